// write_quietly.h: writes to a pipe without SIGPIPE, which would end a program that did not ask for
// it.
#pragma once

#include <cstddef>
#include <span>

#include <sys/types.h>

namespace magpie::net {

// At most this many parts are written by one call.
inline constexpr std::size_t kPartsAtOnce = 16;

// As writev(). A count, or a negative error number. The signal is blocked meanwhile, and taken off
// the thread if it has come: there is nothing like MSG_NOSIGNAL for pipes. Calls nothing of the
// runtime, so the thread stays the same.
ssize_t write_quietly(int fd, std::span<const std::span<const std::byte>> parts);

// Parts that are not written yet.
class UnwrittenParts {
 public:
  explicit UnwrittenParts(std::span<const std::span<const std::byte>> parts) : parts_(parts) {
    skip_empty();
  }
  bool empty() const { return parts_.empty(); }

  // Writes some, at most `most` bytes. As write_quietly().
  ssize_t write_some(int fd, std::size_t most) const {
    std::span<const std::byte> now[kPartsAtOnce];
    std::size_t used = 0;
    for (; used < kPartsAtOnce && used < parts_.size() && most != 0; ++used) {
      now[used] = used == 0 ? parts_[0].subspan(done_) : parts_[used];
      now[used] = now[used].first(now[used].size() < most ? now[used].size() : most);
      most -= now[used].size();
    }
    return write_quietly(fd, {now, used});
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
