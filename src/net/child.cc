#include "net/child.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <unordered_map>
#include <vector>

#include <magpie/blocking.h>
#include <magpie/go.h>
#include <magpie/select.h>

#include "net/socket.h"
#include "sched/presence.h"

namespace magpie::detail {
namespace {

using io::Descriptor;

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
constexpr idtype_t kPidfd = static_cast<idtype_t>(3);  // P_PIDFD

[[gnu::noinline]] int open_pidfd(pid_t id) {
  int fd = static_cast<int>(syscall(SYS_pidfd_open, id, 0));
  if (fd >= 0) return fd;
  int error = errno;
  ::kill(id, SIGKILL);
  while (waitpid(id, nullptr, 0) < 0 && errno == EINTR) {
  }
  throw std::system_error(error, std::generic_category(), "magpie: pidfd_open");
}

// An error number. si_pid is 0 if it has not ended.
[[gnu::noinline]] int ask(int pidfd, siginfo_t& info) {
  info = {};
  return waitid(kPidfd, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) == 0 ? 0 : errno;
}

// The run() that goes on now; 0: none.
std::uint64_t this_run() {
  sched::Presence here;
  return here.generation();
}

// Never destroyed: there may be children until the process has ended. As in Child, nobody calls the
// runtime with the mutex.
struct List {
  std::mutex mutex;
  std::unordered_map<Child*, std::shared_ptr<Child>> children;  // guarded by mutex
};
List& list() {
  static List& all = *new List;
  return all;
}

}  // namespace

Child::Child(pid_t id) : id_(id), pidfd_(open_pidfd(id), Descriptor::Kind::packets) {}

std::shared_ptr<Child> Child::watch(pid_t id) {
  auto child = std::make_shared<Child>(id);
  try {
    {
      std::lock_guard hold(list().mutex);
      list().children.emplace(child.get(), child);
    }
    child->start_reaper();
  } catch (...) {
    (void)child->send(SIGKILL);
    (void)child->wait_on_thread(Context::background(), kNoDeadline);
    throw;
  }
  return child;
}

void Child::reap_orphans() {
  const std::uint64_t now = this_run();
  std::vector<std::shared_ptr<Child>> orphans;
  {
    std::lock_guard hold(list().mutex);
    for (auto& [child, shared] : list().children) {
      std::lock_guard hold_child(child->mutex_);
      if (child->reaper_run_ != now || now == 0) orphans.push_back(shared);
    }
  }
  // Its reaper's reference is lost with its stack, so nobody else would close the pidfd.
  for (auto& child : orphans) {
    if (child->try_reap()) child->pidfd_.close();
  }
}

bool Child::try_reap() {
  {
    std::lock_guard hold(mutex_);
    if (is_over_) return true;
    siginfo_t info;
    error_ = ask(pidfd_.fd(), info);
    if (error_ == EINTR || (error_ == 0 && info.si_pid == 0)) return false;
    if (error_ == 0) {
      status_ = info.si_code == CLD_EXITED ? ExitStatus::of_code(info.si_status)
                                           : ExitStatus::of_signal(info.si_status);
    }
    is_over_ = true;
  }
  ended_.close();
  std::lock_guard hold(list().mutex);
  list().children.erase(this);
  return true;
}

void Child::start_reaper() {
  const std::uint64_t now = this_run();
  if (now == 0) return;
  {
    std::lock_guard hold(mutex_);
    if (is_over_ || reaper_run_ == now) return;
    reaper_run_ = now;
  }
  try {
    go(GoOptions{.name = "reaper"}, [self = shared_from_this()] { self->reap(); });
  } catch (...) {
    std::lock_guard hold(mutex_);
    reaper_run_ = 0;
    throw;
  }
}

void Child::reap() {
  try {
    Descriptor::Turn turn(pidfd_, pidfd_.reader(), "wait for a process");
    turn.perform([this](int) -> ssize_t { return try_reap() ? 0 : -EAGAIN; });
  } catch (const std::system_error&) {  // the poller cannot take one more
    blocking([this] { return wait_on_thread(Context::background(), kNoDeadline); });
  }
}

// Looks now and then: a context has no descriptor, and reap_orphans() may close the pidfd.
[[gnu::noinline]] bool Child::wait_on_thread(const Context& context, DeadlineNs deadline) {
  constexpr std::int64_t kMillisecond = 1'000'000, kLookEveryMs = 10, kLongestMs = 100;
  for (;;) {
    if (try_reap()) return true;
    const std::int64_t now = steady_now_ns();
    if (now >= deadline || context.err()) return false;
    std::int64_t left_ms = kLongestMs;
    if (deadline != kNoDeadline)
      left_ms = std::min(left_ms, (deadline - now + kMillisecond - 1) / kMillisecond);
    if (context.done() != Chan<void>::nil()) left_ms = std::min(left_ms, kLookEveryMs);
    pollfd wanted{.fd = pidfd_.fd(), .events = POLLIN, .revents = 0};
    (void)::poll(&wanted, 1, static_cast<int>(left_ms));
  }
}

bool Child::wait(const Context& context, DeadlineNs deadline) {
  if (try_reap()) return true;
  if (goroutine_id() == 0) return wait_on_thread(context, deadline);
  start_reaper();
  const Chan<void> cancelled = context.done();
  if (deadline == kNoDeadline) {
    magpie::select(on_recv(ended_), on_recv(cancelled));
  } else {
    auto left = std::chrono::nanoseconds(deadline - steady_now_ns());
    if (left.count() > 0) magpie::select(on_recv(ended_), on_recv(cancelled), on_timeout(left));
  }
  return try_reap();
}

ExitStatus Child::status() const {
  std::lock_guard hold(mutex_);
  if (error_ != 0)
    throw std::system_error(error_, std::generic_category(), "magpie: wait for a process");
  return status_;
}

[[gnu::noinline]] int Child::send(int signal) {
  std::lock_guard hold(mutex_);  // the pidfd is not closed before it is over
  if (is_over_) return 0;
  if (syscall(SYS_pidfd_send_signal, pidfd_.fd(), signal, nullptr, 0) == 0) return 0;
  return errno == ESRCH ? 0 : errno;
}

}  // namespace magpie::detail
