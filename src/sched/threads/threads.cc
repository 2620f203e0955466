#include "sched/threads/threads.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu_slices.h"
#include "base/futex.h"
#include "base/guard.h"
#include "base/os.h"
#include "sched/child_settings.h"
#include "sched/core/switching.h"
#include "sched/current.h"
#include "sched/run/inside.h"
#include "sched/run/procs.h"
#include "sched/run/runtime.h"
#include "sched/taking/hand_off.h"
#include "sched/threads/overflow.h"

namespace magpie::sched {
namespace {

// How late the kernel may wake a thread to save a wake-up. Its default of 50 us is most of what a
// sleep may be late.
constexpr unsigned long kTimerSlackNs = 10'000;

// The thread's part of becoming and ceasing to be an M.
void begin_m(M* m) {
  m->exceptions = context::thread_exception_state();
  m->os.tid.store(gettid(), base::relaxed);
  base::note_own_sleeps_in(&m->own_sleeps);
  set_current_m(m);
  open_signal_stack(m);
  runtime->preemption.unblock(m);
}

// For top -H, perf and debuggers. The thread that called run() keeps its name: it is the program's.
void name_thread(const M* m) {
  char name[16];  // the kernel's limit
  std::snprintf(name, sizeof name, "magpie-m%d", m->number);
  pthread_setname_np(pthread_self(), name);
}

// m's thread has ended, or never was. A thread that is about to end may take its time: destructors
// of the user's thread_locals run then. They may even wait for goroutines that need a new thread.
bool is_gone(M* m) { return m->never_ran || pthread_tryjoin_np(m->os.handle, nullptr) == 0; }

void* thread_main(void* argument) {
  M* m = static_cast<M*>(argument);
  begin_m(m);
  name_thread(m);
  base::ask_for_slices(0);  // it inherited its maker's
  runtime->chaos.be_born_late();
  if (P* p = runtime->threads.maker.take_wanted(m)) begin_with(m, p);
  run_loop(m);
  end_m(m);
  return nullptr;
}

}  // namespace

void be_punctual(M* m) {
  if (m->os.timer_slack_before_ns != 0) return;
  m->os.timer_slack_before_ns = prctl(PR_GET_TIMERSLACK);
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
}

void end_m(M* m) {
  if (m->spare != nullptr) {
    runtime->stacks.give(std::exchange(m->spare, nullptr));
  }
  restore_settings_of(m);
  runtime->preemption.block_again(m);
  close_signal_stack(m);
  base::note_own_sleeps_in(nullptr);
  set_current_m(nullptr);
}

void Threads::prepare(M* m) {
  m->spare = runtime->stacks.take(0);  // its thread may run anywhere
  if (m->spare == nullptr) throw std::bad_alloc();
  m->spin_budget = kFirstSpinBudget;
  m->thread_locks = 0;
  m->is_over = false;
  m->never_ran = false;
}

std::unique_ptr<M> Threads::new_m() {
  auto m = std::make_unique<M>();
  prepare(m.get());
  return m;
}

// Records are never given back, so that sysmon, or a thread that wakes an M, may look at any M
// that it has heard of.
M* Threads::reuse_ended() {
  M* found = nullptr;
  {
    base::Guard hold(lock_);
    for_each([&](M* m) {
      if (found == nullptr && m->has_ended && is_gone(m)) found = m;
    });
    if (found == nullptr) return nullptr;
    found->has_ended = false;
    found->never_ran = true;  // it is joined; prepare() changes that
    count_.store(count() + 1, base::relaxed);
  }
  try {
    prepare(found);
  } catch (...) {
    note_ended(found);
    throw;
  }
  return found;
}

M* Threads::publish(std::unique_ptr<M> m) {
  base::Guard hold(lock_);
  m->older = newest_.load(base::relaxed);
  if (m->older != nullptr) m->number = m->older->number + 1;
  newest_.store(m.get(), base::release);  // with for_each's acquire
  count_.store(count() + 1, base::relaxed);
  return m.release();
}

M* Threads::adopt_caller() {
  M* m = publish(new_m());
  begin_m(m);
  return m;
}

Threads::~Threads() {
  for (M* m = newest_.load(base::relaxed); m != nullptr;) delete std::exchange(m, m->older);
}

bool Threads::start(P* p, Searching searching) {
  return may_try_now() && !is_full() && maker.ask_for_thread(p, searching);
}

void Threads::start_spares(std::size_t waiting, std::size_t most) {
  if (may_try_now() && !is_full()) maker.ask_for_spares(waiting, most);
}

bool Threads::make() {
  if (is_full()) return false;
  AllowedInside why(
      "only if there is no maker, as no thread could be made for it at the beginning");
  try {
    M* m = reuse_ended();
    if (m == nullptr) m = publish(new_m());  // before it runs: others may look for it
    m->p = nullptr;
    m->searching = false;
    maker.note_unborn(1);
    int error = base::os().create_thread(&m->os.handle, nullptr, thread_main, m);
    if (error == 0) return true;
    maker.note_unborn(-1);
    runtime->stacks.give(std::exchange(m->spare, nullptr));
    m->never_ran = true;
    note_ended(m);
    complain(std::strerror(error));  // now that it does not count any more
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  }
  return false;
}

void Threads::note_ended(M* m) {
  base::Guard hold(lock_);
  m->has_ended = true;
  count_.store(count() - 1, base::relaxed);
}

// Signal 0 only asks. If the kernel has given the number to a new thread of the process, the answer
// is yes too early, and the caller asks again.
bool Threads::some_are_leaving() {
  base::Guard hold(lock_);
  bool found = false;
  for_each([&](M* m) {
    found = found || (m->has_ended && !m->never_ran &&
                      syscall(SYS_tgkill, getpid(), m->os.tid.load(base::relaxed), 0) == 0);
  });
  return found;
}

bool Threads::is_full() {
  if (count() < limit()) return false;
  complain("the limit on threads (Options::max_threads) is reached");
  return true;
}

bool Threads::are_refused() const {
  if (count() >= limit()) return true;
  std::int64_t retry_at = retry_at_ns_.load(base::relaxed);
  return retry_at != 0 && base::now_ns() < retry_at + kRefusalLastsNs;
}

bool Threads::may_try_now() const {
  std::int64_t retry_at = retry_at_ns_.load(base::relaxed);
  return retry_at == 0 || base::now_ns() >= retry_at;
}

void Threads::complain(const char* why) {
  retry_at_ns_.store(base::now_ns() + kRetryAfterNs, base::relaxed);
  if (complained_.exchange(true, base::relaxed)) return;
  base::warn("no new thread for an idle processor: %s; going on with %d", why, count());
}

// Nobody makes more, see Maker::stop(). The oldest is the caller. Sysmon says so if it takes long.
void Threads::join_all() {
  for_each([&](M* m) {
    if (m->older != nullptr && !m->never_ran) pthread_join(m->os.handle, nullptr);
  });
}

}  // namespace magpie::sched
