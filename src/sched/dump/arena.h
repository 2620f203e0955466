// arena.h: memory for a dump, straight from the system: works with a corrupt heap, and with one
// whose locks a stopped thread holds.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace magpie::sched {

class Arena {
 public:
  Arena() = default;
  ~Arena() {
    while (last_ != nullptr) {
      Chunk* before = last_->before;
      munmap(last_, last_->bytes);
      last_ = before;
    }
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Null: there is no memory.
  template <class T>
  T* make(std::size_t count = 1) {
    void* memory = take(count * sizeof(T));
    return memory == nullptr ? nullptr : new (memory) T[count];
  }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  struct alignas(64) Chunk {
    Chunk* before;
    std::size_t bytes;
  };

  void* take(std::size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (last_ == nullptr || used_ + bytes > last_->bytes) {
      std::size_t mapped =
          bytes + sizeof(Chunk) > kChunkBytes ? bytes + sizeof(Chunk) : kChunkBytes;
      void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) return nullptr;
      last_ = new (memory) Chunk{last_, mapped};
      used_ = sizeof(Chunk);
    }
    void* memory = reinterpret_cast<std::byte*>(last_) + used_;
    used_ += bytes;
    return memory;
  }

  Chunk* last_ = nullptr;
  std::size_t used_ = 0;
};

}  // namespace magpie::sched
