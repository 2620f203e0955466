// wait.h: waits for descriptors of other libraries.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <system_error>

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>

namespace magpie {
class Context;  // magpie/context.h
}

namespace magpie::detail {
// False: the deadline has passed, or, without exceptions, there is an error.
MAGPIE_API bool wait_readable_until(int fd, DeadlineNs deadline);
MAGPIE_API bool wait_writable_until(int fd, DeadlineNs deadline);
MAGPIE_API bool wait_readable_until(int fd, DeadlineNs deadline, std::error_code& error);
MAGPIE_API bool wait_writable_until(int fd, DeadlineNs deadline, std::error_code& error);
}  // namespace magpie::detail

namespace magpie::net {

// Blocks the goroutine until the descriptor can be read from or written to, or has an error or its
// end. The descriptor stays the caller's. The caller has to keep it open meanwhile. A regular file
// or a directory is always ready, as for poll(2). Throws std::system_error:
// errc::bad_file_descriptor; errc::operation_not_permitted for a descriptor that is not ready and
// cannot be waited for.
inline void wait_readable(int fd) { (void)detail::wait_readable_until(fd, detail::kNoDeadline); }
inline void wait_writable(int fd) { (void)detail::wait_writable_until(fd, detail::kNoDeadline); }
// Without exceptions.
inline void wait_readable(int fd, std::error_code& error) {
  (void)detail::wait_readable_until(fd, detail::kNoDeadline, error);
}
inline void wait_writable(int fd, std::error_code& error) {
  (void)detail::wait_writable_until(fd, detail::kNoDeadline, error);
}

// Until a time of any clock. False: the time has come, or, without exceptions, there is an error.
template <class Clock, class Duration>
[[nodiscard]] bool wait_readable(int fd, std::chrono::time_point<Clock, Duration> deadline) {
  return detail::wait_until(
      deadline, [fd](detail::DeadlineNs ns) { return detail::wait_readable_until(fd, ns); });
}
template <class Clock, class Duration>
[[nodiscard]] bool wait_writable(int fd, std::chrono::time_point<Clock, Duration> deadline) {
  return detail::wait_until(
      deadline, [fd](detail::DeadlineNs ns) { return detail::wait_writable_until(fd, ns); });
}
template <class Clock, class Duration>
[[nodiscard]] bool wait_readable(int fd, std::chrono::time_point<Clock, Duration> deadline,
                                 std::error_code& error) {
  bool ready = false;
  detail::wait_until(deadline, [&](detail::DeadlineNs ns) {
    ready = detail::wait_readable_until(fd, ns, error);
    return ready || error;
  });
  return ready;
}
template <class Clock, class Duration>
[[nodiscard]] bool wait_writable(int fd, std::chrono::time_point<Clock, Duration> deadline,
                                 std::error_code& error) {
  bool ready = false;
  detail::wait_until(deadline, [&](detail::DeadlineNs ns) {
    ready = detail::wait_writable_until(fd, ns, error);
    return ready || error;
  });
  return ready;
}

// Until time is up.
template <class Rep, class Period>
[[nodiscard]] bool wait_readable(int fd, std::chrono::duration<Rep, Period> timeout) {
  return detail::wait_readable_until(fd, detail::deadline_after(timeout));
}
template <class Rep, class Period>
[[nodiscard]] bool wait_writable(int fd, std::chrono::duration<Rep, Period> timeout) {
  return detail::wait_writable_until(fd, detail::deadline_after(timeout));
}
template <class Rep, class Period>
[[nodiscard]] bool wait_readable(int fd, std::chrono::duration<Rep, Period> timeout,
                                 std::error_code& error) {
  return detail::wait_readable_until(fd, detail::deadline_after(timeout), error);
}
template <class Rep, class Period>
[[nodiscard]] bool wait_writable(int fd, std::chrono::duration<Rep, Period> timeout,
                                 std::error_code& error) {
  return detail::wait_writable_until(fd, detail::deadline_after(timeout), error);
}

// Until the context is over: then they throw std::system_error with its err().
MAGPIE_API void wait_readable(int fd, const Context& context);
MAGPIE_API void wait_writable(int fd, const Context& context);
MAGPIE_API void wait_readable(int fd, const Context& context, std::error_code& error);
MAGPIE_API void wait_writable(int fd, const Context& context, std::error_code& error);

}  // namespace magpie::net
