// ring.h: a queue that grows, with access to both ends and by number.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace magpie::lab {

template <class T>
class Ring {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t index) const { return items_[(first_ + index) & mask()]; }
  const T& front() const { return items_[first_]; }

  void push(T item) {
    if (size_ == items_.size()) grow();
    items_[(first_ + size_++) & mask()] = std::move(item);
  }
  void push_front(T item) {
    if (size_ == items_.size()) grow();
    first_ = (first_ + mask()) & mask();
    items_[first_] = std::move(item);
    ++size_;
  }
  T pop() {
    T item = std::move(items_[first_]);
    first_ = (first_ + 1) & mask();
    --size_;
    return item;
  }
  T pop_back() { return std::move(items_[(first_ + --size_) & mask()]); }
  // Takes the item with this number out; those behind it move up.
  T take(std::size_t index) {
    T item = std::move(items_[(first_ + index) & mask()]);
    for (std::size_t i = index; i + 1 < size_; ++i)
      items_[(first_ + i) & mask()] = std::move(items_[(first_ + i + 1) & mask()]);
    --size_;
    return item;
  }

 private:
  std::size_t mask() const { return items_.size() - 1; }
  void grow() {
    std::vector<T> larger(items_.empty() ? 8 : items_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(items_[(first_ + i) & mask()]);
    items_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> items_;  // as many as a power of two
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace magpie::lab
