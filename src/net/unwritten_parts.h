// unwritten_parts.h: what of several parts is not written yet, a system call's worth at a time.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace magpie::net {

class UnwrittenParts {
 public:
  // At most this many are written by one call.
  static constexpr std::size_t kAtOnce = 16;

  explicit UnwrittenParts(std::span<const std::span<const std::byte>> parts) : parts_(parts) {
    skip_empty();
  }
  bool empty() const { return parts_.empty(); }

  // What comes next, at most `most` bytes. Returns how many parts.
  std::size_t next(iovec (&vectors)[kAtOnce], std::size_t most) const {
    std::size_t used = 0;
    for (; used < kAtOnce && used < parts_.size() && most != 0; ++used) {
      std::span<const std::byte> part = used == 0 ? parts_[0].subspan(done_) : parts_[used];
      std::size_t size = std::min(part.size(), most);
      vectors[used] = {const_cast<std::byte*>(part.data()), size};
      most -= size;
    }
    return used;
  }

  void drop(std::size_t count) {
    done_ += count;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!parts_.empty() && done_ >= parts_[0].size()) {
      done_ -= parts_[0].size();
      parts_ = parts_.subspan(1);
    }
  }

  std::span<const std::span<const std::byte>> parts_;
  std::size_t done_ = 0;  // of the first part
};

}  // namespace magpie::net
