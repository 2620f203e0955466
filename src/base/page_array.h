// page_array.h: an array that grows by asking the kernel, not the allocator. For memory that is
// needed inside the runtime, where no thread may wait for the allocator's locks.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "base/os.h"

namespace magpie::base {

// Elements must be trivial, and are zero at first.
template <class T>
class PageArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  PageArray() = default;
  ~PageArray() { reset(); }
  PageArray(PageArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  PageArray& operator=(PageArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  T* data() const { return data_; }
  T& operator[](std::size_t index) const { return data_[index]; }
  std::size_t capacity() const { return capacity_; }

  // Keeps all elements. False: no memory, and nothing has changed.
  [[nodiscard]] bool grow_to(std::size_t capacity) { return grow_to(capacity, capacity_); }

  // Keeps the first `used` elements, and does not touch the others.
  [[nodiscard]] bool grow_to(std::size_t capacity, std::size_t used) {
    if (capacity <= capacity_) return true;
    void* fresh = os().map(nullptr, capacity * sizeof(T), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return false;
    auto* grown = static_cast<T*>(fresh);
    for (std::size_t i = 0; i < used; ++i) grown[i] = data_[i];
    reset();
    data_ = grown;
    capacity_ = capacity;
    return true;
  }

  void reset() {
    if (data_ != nullptr) munmap(data_, capacity_ * sizeof(T));
    data_ = nullptr;
    capacity_ = 0;
  }

 private:
  T* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// A list in such an array: it grows and shrinks at its end. Only reserve() asks for memory.
template <class T>
class PageList {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& back() const { return array_[size_ - 1]; }
  T* begin() const { return array_.data(); }
  T* end() const { return array_.data() + size_; }

  // Makes room for `capacity` elements in all. False: no memory, and nothing has changed.
  [[nodiscard]] bool reserve(std::size_t capacity) {
    return capacity <= array_.capacity() || array_.grow_to(2 * capacity, size_);
  }

  // The caller has made sure that there is room.
  void push(const T& element) { array_[size_++] = element; }
  void push(std::span<const T> elements) {
    for (const T& element : elements) push(element);
  }

  T take_last() { return array_[--size_]; }
  // Takes the last elements, in their order: as many as there are, and as fit into `out`. Returns
  // how many.
  std::size_t take_last(std::span<T> out) {
    std::size_t count = out.size() < size_ ? out.size() : size_;
    size_ -= count;
    for (std::size_t i = 0; i < count; ++i) out[i] = array_[size_ + i];
    return count;
  }

 private:
  PageArray<T> array_;
  std::size_t size_ = 0;
};

}  // namespace magpie::base
