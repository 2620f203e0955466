#include "sched/threads.h"

#include <sys/prctl.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>

#include "base/check.h"
#include "base/clock.h"
#include "base/os.h"
#include "sched/current.h"
#include "sched/loop.h"
#include "sched/overflow.h"
#include "sched/runtime.h"

namespace magpie::sched {
namespace {

// How late the kernel may wake a thread to save a wake-up. Its default of 50 us is most of what a sleep may be late.
constexpr unsigned long kTimerSlackNs = 10'000;

// The thread's part of becoming and ceasing to be an M.
void begin_m(M* m) {
  m->exceptions = context::thread_exception_state();
  set_current_m(m);
  open_signal_stack(m);
  m->timer_slack_before_ns = prctl(PR_GET_TIMERSLACK);
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
}

void* thread_main(void* argument) {
  M* m = static_cast<M*>(argument);
  begin_m(m);
  m->p->begin_hold(base::now_ns());
  runtime->pins.bind(m);
  run_loop(m);
  end_m(m);
  return nullptr;
}

}  // namespace

void end_m(M* m) {
  if (m->spare != nullptr) {
    runtime->stacks.give(std::exchange(m->spare, nullptr));
  }
  runtime->pins.release(m);
  close_signal_stack(m);
  prctl(PR_SET_TIMERSLACK, m->timer_slack_before_ns);
  set_current_m(nullptr);
}

std::unique_ptr<M> Threads::new_m() {
  auto m = std::make_unique<M>();
  m->spin_budget = kFirstSpinBudget;
  m->spare = runtime->stacks.take();
  if (m->spare == nullptr) throw std::bad_alloc();
  return m;
}

M* Threads::adopt_caller() {
  auto m = new_m();
  ms_.reserve(1);
  ms_.push_back(std::move(m));
  count_.store(1, base::relaxed);
  begin_m(ms_.back().get());
  return ms_.back().get();
}

bool Threads::start(P* p, Searching searching) {
  if (!may_try_now()) return false;
  std::lock_guard hold(lock_);
  if (count() >= limit()) {
    complain_locked("the limit on threads (Options::max_threads) is reached");
    return false;
  }
  try {
    std::unique_ptr<M> m = new_m();
    m->p = p;
    m->searching = searching == Searching::yes;
    ms_.reserve(ms_.size() + 1);
    int error = base::os().create_thread(&m->thread, nullptr, thread_main, m.get());
    if (error != 0) {
      runtime->stacks.give(m->spare);
      complain_locked(std::strerror(error));
      return false;
    }
    ms_.push_back(std::move(m));
  } catch (const std::bad_alloc&) {
    complain_locked("out of memory");
    return false;
  }
  count_.store(count() + 1, base::relaxed);
  return true;
}

bool Threads::may_try_now() const {
  std::int64_t retry_at = retry_at_ns_.load(base::relaxed);
  return retry_at == 0 || base::now_ns() >= retry_at;
}

void Threads::complain_locked(const char* why) {
  retry_at_ns_.store(base::now_ns() + kRetryAfterNs, base::relaxed);
  if (complained_) return;
  complained_ = true;
  base::warn("no new thread for an idle processor: %s; going on with %d", why, count());
}

void Threads::join_all() {
  // A thread that still runs may start another; when all that are listed have ended, nobody can.
  std::unique_lock hold(lock_);
  for (std::size_t i = 1; i < ms_.size(); ++i) {
    pthread_t thread = ms_[i]->thread;
    hold.unlock();
    pthread_join(thread, nullptr);
    hold.lock();
  }
}

}  // namespace magpie::sched
