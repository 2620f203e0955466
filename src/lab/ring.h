// ring.h: a queue that grows, from which both ends can be taken.
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
  const T& front() const { return items_[first_]; }

  void push(T item) {
    if (size_ == items_.size()) grow();
    items_[(first_ + size_++) & mask()] = std::move(item);
  }
  T pop() {
    T item = std::move(items_[first_]);
    first_ = (first_ + 1) & mask();
    --size_;
    return item;
  }
  T pop_back() { return std::move(items_[(first_ + --size_) & mask()]); }

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
