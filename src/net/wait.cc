#include <magpie/net/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include <magpie/runtime.h>

#include "io/descriptor.h"
#include "net/errors.h"
#include "net/wait_for.h"

namespace magpie::net {
namespace {

using io::Descriptor;

// 1: it is, 0: it is not, else a negative error number. Does not block.
ssize_t is_ready(int fd, short events) {
  pollfd wanted{.fd = fd, .events = events, .revents = 0};
  if (::poll(&wanted, 1, 0) <= 0) return 0;
  return (wanted.revents & POLLNVAL) != 0 ? -EBADF : 1;
}

[[gnu::noinline]] int duplicate(int fd, std::error_code& error) {
  int other = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (other < 0) error = code_of_errno();
  return other;
}

void throw_if(std::error_code error, int fd) {
  if (error) fail(error, "wait for descriptor " + std::to_string(fd));
}

// False: the deadline has passed, or there is an error.
bool wait_or_time_out(int fd, short events, detail::DeadlineNs deadline, std::error_code& error) {
  error = wait_for(fd, events, deadline, nullptr);
  if (!error) return true;
  if (error == std::errc::timed_out) error.clear();
  return false;
}

}  // namespace

namespace {

std::error_code wait_with(Descriptor& descriptor, short events, detail::DeadlineNs deadline,
                          const Context* context) {
  Descriptor::Side& side = events == POLLIN ? descriptor.reader() : descriptor.writer();
  descriptor.set_deadline(side, deadline);
  ContextLimit limit(context);
  Descriptor::Operation operation(descriptor, side, "wait for a descriptor", limit.get());
  io::Outcome outcome = operation.perform([&](int number) -> ssize_t {
    ssize_t now = is_ready(number, events);
    return now == 0 ? -EAGAIN : now;
  });
  return code_of(outcome.error);
}

}  // namespace

std::error_code wait_for(int fd, short events, detail::DeadlineNs deadline,
                         const Context* context) {
  if (context != nullptr && context->cancelled()) return context->err();
  ssize_t ready = is_ready(fd, events);
  if (ready != 0) return code_of(ready < 0 ? static_cast<int>(-ready) : 0);
  // Another number for the same file, so that several may wait for it, each with a registration of
  // its own.
  std::error_code error;
  int mine = duplicate(fd, error);
  if (error) return error;
  if (context == nullptr) {
    Descriptor descriptor(mine, Descriptor::Kind::packets);
    return wait_with(descriptor, events, deadline, nullptr);
  }
  // The context knows of it, so its memory must stay if run() drops the goroutine.
  auto descriptor = std::make_unique<Descriptor>(mine, Descriptor::Kind::packets);
  return wait_with(*descriptor, events, deadline, context);
}

namespace {

// The context is looked at now and then.
std::error_code wait_on_thread(int fd, short events, detail::DeadlineNs deadline,
                               const Context* context) {
  constexpr detail::DeadlineNs kLookEvery = 5'000'000, kLongest = 1'000'000'000;
  for (;;) {
    if (context != nullptr && context->cancelled()) return context->err();
    detail::DeadlineNs left = deadline - detail::steady_now_ns();
    if (left <= 0) return code_of(ETIMEDOUT);
    left = std::min(left, context == nullptr ? kLongest : kLookEvery);
    pollfd wanted{.fd = fd, .events = events, .revents = 0};
    if (::poll(&wanted, 1, static_cast<int>((left + 999'999) / 1'000'000)) > 0) return {};
  }
}

}  // namespace

std::error_code wait_anywhere(int fd, short events, detail::DeadlineNs deadline,
                              const Context* context) {
  return goroutine_id() == 0 ? wait_on_thread(fd, events, deadline, context)
                             : wait_for(fd, events, deadline, context);
}

void wait_readable(int fd, const Context& context, std::error_code& error) {
  error = wait_for(fd, POLLIN, detail::kNoDeadline, &context);
}
void wait_writable(int fd, const Context& context, std::error_code& error) {
  error = wait_for(fd, POLLOUT, detail::kNoDeadline, &context);
}
void wait_readable(int fd, const Context& context) {
  throw_if(wait_for(fd, POLLIN, detail::kNoDeadline, &context), fd);
}
void wait_writable(int fd, const Context& context) {
  throw_if(wait_for(fd, POLLOUT, detail::kNoDeadline, &context), fd);
}

}  // namespace magpie::net

namespace magpie::detail {

bool wait_readable_until(int fd, DeadlineNs deadline, std::error_code& error) {
  return net::wait_or_time_out(fd, POLLIN, deadline, error);
}
bool wait_writable_until(int fd, DeadlineNs deadline, std::error_code& error) {
  return net::wait_or_time_out(fd, POLLOUT, deadline, error);
}
bool wait_readable_until(int fd, DeadlineNs deadline) {
  std::error_code error;
  bool ready = wait_readable_until(fd, deadline, error);
  net::throw_if(error, fd);
  return ready;
}
bool wait_writable_until(int fd, DeadlineNs deadline) {
  std::error_code error;
  bool ready = wait_writable_until(fd, deadline, error);
  net::throw_if(error, fd);
  return ready;
}

}  // namespace magpie::detail
