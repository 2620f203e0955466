#include "poll/poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>

#include "base/clock.h"
#include "base/sanitizer.h"

namespace magpie::poll {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMillisecond = 1'000'000;

#if defined(MAGPIE_TSAN)
constexpr bool kHasFineTimes =
    // ThreadSanitizer does not know epoll_pwait2(), and keeps signals back while a thread is in
    // there
    false;
#else
constexpr bool kHasFineTimes = true;
#endif

int error_of(int result) { return result == 0 ? 0 : errno; }

}  // namespace

Poller::~Poller() {
  if (epoll_ >= 0) close(epoll_);
  if (event_ >= 0) close(event_);
}

int Poller::open() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return errno;
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ >= 0) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = kInterruption}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &event) == 0) return 0;
  }
  int error = errno;
  if (event_ >= 0) close(event_);
  close(epoll_);
  epoll_ = event_ = -1;
  return error;
}

int Poller::add(int fd, Tag tag) {
  epoll_event event{.events = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                    .data = {.u64 = tag.packed()}};
  return error_of(epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event));
}

void Poller::remove(int fd) {
  epoll_event unused{};
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, fd,
                  // a child of fork() may have closed it
                  &unused);
}

void Poller::interrupt() {
  if (!interruption_.ask()) return;
  std::uint64_t one = 1;
  (void)!write(event_, &one, sizeof one);  // cannot fail: it is drained before it is full
}

int Poller::wait_once(std::span<epoll_event> events, std::int64_t until_ns) {
  int most = static_cast<int>(events.size());
  if (until_ns == kAtOnce) return epoll_wait(epoll_, events.data(), most, 0);
  if (until_ns == kNever) return epoll_wait(epoll_, events.data(), most, -1);
  std::int64_t left = std::max<std::int64_t>(until_ns - base::now_ns(), 0);
  if (kHasFineTimes && !coarse_.load(base::relaxed)) {
    timespec time{.tv_sec = left / kSecond, .tv_nsec = left % kSecond};
    int count = epoll_pwait2(epoll_, events.data(), most, &time, nullptr);
    if (count >= 0 || errno == EINTR) return count;
    // The kernel does not know the call (ENOSYS), or a sandbox forbids it (EPERM, or another
    // error).
    coarse_.store(true, base::relaxed);
  }
  std::int64_t ms = std::min<std::int64_t>((left + kMillisecond - 1) / kMillisecond,
                                           std::numeric_limits<int>::max());
  return epoll_wait(epoll_, events.data(), most, static_cast<int>(ms));
}

std::size_t Poller::wait(std::span<epoll_event> events, std::int64_t until_ns) {
  int count = wait_once(events, until_ns);
  if (count <= 0) return 0;  // time was up, or a signal came
  std::size_t kept = 0;
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.u64 != kInterruption) {
      events[kept++] = events[static_cast<std::size_t>(i)];
    } else if (until_ns != kAtOnce) {  // a thread that does not block leaves it to the blocker
      std::uint64_t times;
      (void)!read(event_, &times, sizeof times);
      interruption_.drained();
    }
  }
  return kept;
}

}  // namespace magpie::poll
