// os_faults.h: makes the system refuse memory, while it lives.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/os.h"

namespace magpie::support {

// Refuses mappings larger than `largest` bytes, after letting `first` calls pass.
class MapFaults {
 public:
  explicit MapFaults(std::size_t largest = 0, int first = 0) : real_(base::os().map) {
    limit = largest;
    passes = first;
    refused = 0;
    base::os().map = map;
  }
  ~MapFaults() { base::os().map = real_; }
  MapFaults(const MapFaults&) = delete;
  MapFaults& operator=(const MapFaults&) = delete;

  static int refusals() { return refused; }
  // From now on everything is granted.
  static void relent() { limit = static_cast<std::size_t>(-1); }

 private:
  static void* map(void* address, std::size_t length, int protection, int flags, int fd,
                   off_t offset) {
    if (length > limit && passes.fetch_sub(1) <= 0) {
      ++refused;
      errno = ENOMEM;
      return MAP_FAILED;
    }
    return mmap(address, length, protection, flags, fd, offset);
  }

  static inline std::atomic<std::size_t> limit;
  static inline std::atomic<int> passes;
  static inline std::atomic<int> refused;
  decltype(base::Os::map) real_;
};

}  // namespace magpie::support
