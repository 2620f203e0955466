#include "net/child.h"

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <unordered_map>
#include <vector>

#include <magpie/blocking.h>
#include <magpie/go.h>
#include <magpie/select.h>

#include "base/per_process.h"
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
  throw std::system_error(errno, std::generic_category(), "magpie: pidfd_open");
}

// It has not been reaped, so the number is its own.
[[gnu::noinline]] void end_now(pid_t id) {
  ::kill(id, SIGKILL);
  while (waitpid(id, nullptr, 0) < 0 && errno == EINTR) {
  }
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

// As in Child, nobody calls the runtime with the mutex.
struct List {
  explicit List(List* list_of_parent)
      : of_parent(list_of_parent),
        forks(list_of_parent == nullptr ? 0 : list_of_parent->forks + 1) {}

  // Of the process that forked this one: kept, so that it is no leak. Its mutex may be locked.
  [[maybe_unused]] List* const of_parent;
  const int forks;
  std::mutex mutex;
  std::unordered_map<Child*, std::shared_ptr<Child>> children;  // guarded by mutex
};
constinit base::PerProcess<List> lists;
[[maybe_unused]] const int lists_at_forks =
    pthread_atfork(nullptr, nullptr, [] { lists.renew_in_child(); });

List& list() { return lists.get(); }

}  // namespace

Child::Child(pid_t id)
    : id_(id), forks_(list().forks), pidfd_(open_pidfd(id), Descriptor::Kind::packets) {}

std::shared_ptr<Child> Child::adopt(pid_t id) {
  try {
    auto child = std::make_shared<Child>(id);
    std::lock_guard hold(list().mutex);
    list().children.emplace(child.get(), child);
    return child;
  } catch (...) {
    end_now(id);
    throw;
  }
}

void Child::watch() {
  try {
    start_reaper();
  } catch (...) {
    (void)send(SIGKILL);
    (void)wait_on_thread(Context::background(), kNoDeadline);
    throw;
  }
}

bool Child::is_of_parent() const { return forks_ != list().forks; }

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
  for (auto& child : orphans) {
    if (child->try_reap()) child->finish();  // its reaper may have been dropped before
  }
}

bool Child::try_reap() {
  if (is_of_parent()) return true;
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
  finish();
  return true;
}

// Call this when the child is over: the pidfd is then used only to wait for it, and finish() wakes
// its waiters. May be called again.
void Child::finish() {
  {
    // A reaper that was dropped with its run() counts as inside until somebody else comes in.
    Descriptor::KeptOpen number(pidfd_);
    pidfd_.close();
  }
  std::lock_guard hold(list().mutex);
  list().children.erase(this);
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
    Descriptor::Operation operation(pidfd_, pidfd_.reader(), "wait for a process");
    operation.perform([this](int) -> ssize_t { return try_reap() ? 0 : -EAGAIN; });
  } catch (const std::system_error&) {  // the poller cannot take one more
    blocking([this] { return wait_on_thread(Context::background(), kNoDeadline); });
  }
}

// Looks now and then: a context has no descriptor, and somebody else may reap it, whereupon the
// number may become another file's.
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
  if (is_of_parent())
    throw std::system_error(ECHILD, std::generic_category(), "magpie: wait for a process");
  std::lock_guard hold(mutex_);
  if (error_ != 0)
    throw std::system_error(error_, std::generic_category(), "magpie: wait for a process");
  return status_;
}

[[gnu::noinline]] int Child::send(int signal) {
  if (is_of_parent()) return ECHILD;
  std::lock_guard hold(mutex_);  // the pidfd is not closed before it is over
  if (is_over_) return 0;
  if (syscall(SYS_pidfd_send_signal, pidfd_.fd(), signal, nullptr, 0) == 0) return 0;
  return errno == ESRCH ? 0 : errno;
}

}  // namespace magpie::detail
