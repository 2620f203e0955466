// wait.h: waits for descriptors of other libraries.
#pragma once

#include <chrono>

#include <magpie/detail/deadline.h>

namespace magpie::net {

bool wait_readable_until(int fd, detail::DeadlineNs deadline);
bool wait_writable_until(int fd, detail::DeadlineNs deadline);

// Blocks the goroutine until the descriptor can be read from or written to, or has an error or its end. The descriptor stays
// the caller's, who keeps it open meanwhile. Throws std::system_error: errc::operation_not_permitted for a descriptor
// that cannot be waited for (a regular file), errc::bad_file_descriptor.
inline void wait_readable(int fd) { (void)wait_readable_until(fd, detail::kNoDeadline); }
inline void wait_writable(int fd) { (void)wait_writable_until(fd, detail::kNoDeadline); }

// The same, with a deadline. False: it has passed.
template <class Duration>
[[nodiscard]] bool wait_readable(
    int fd, std::chrono::time_point<std::chrono::steady_clock, Duration> deadline) {
  return wait_readable_until(fd, detail::deadline_at(deadline));
}
template <class Duration>
[[nodiscard]] bool wait_writable(
    int fd, std::chrono::time_point<std::chrono::steady_clock, Duration> deadline) {
  return wait_writable_until(fd, detail::deadline_at(deadline));
}

}  // namespace magpie::net
