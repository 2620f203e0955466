// page_array.h: an array that grows by asking the kernel, not the allocator: for memory that is needed inside the runtime,
// where nobody may wait for the allocator's locks.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "base/os.h"

namespace magpie::base {

// Elements are bytes to it: trivial, and zero at first.
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

  // Keeps what is there. False: no memory, nothing has changed.
  [[nodiscard]] bool grow_to(std::size_t capacity) {
    if (capacity <= capacity_) return true;
    void* fresh = os().map(nullptr, capacity * sizeof(T), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return false;
    auto* grown = static_cast<T*>(fresh);
    for (std::size_t i = 0; i < capacity_; ++i) grown[i] = data_[i];
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

}  // namespace magpie::base
