#include "sched/threads.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu_slices.h"
#include "base/futex.h"
#include "base/os.h"
#include "sched/bound.h"
#include "sched/current.h"
#include "sched/inside.h"
#include "sched/loop.h"
#include "sched/overflow.h"
#include "sched/procs.h"
#include "sched/runtime.h"

namespace magpie::sched {
namespace {

// How late the kernel may wake a thread to save a wake-up. Its default of 50 us is most of what a sleep may be late.
constexpr unsigned long kTimerSlackNs = 10'000;

constexpr std::int64_t kMakersSliceNs = 100'000;  // somebody waits for it

// The thread's part of becoming and ceasing to be an M.
void begin_m(M* m) {
  m->exceptions = context::thread_exception_state();
  m->tid.store(gettid(), base::relaxed);
  base::note_own_sleeps_in(&m->own_sleeps);
  set_current_m(m);
  open_signal_stack(m);
  runtime->preemption.unblock(m);
}

Searching wanted_by(const P* p) { return p->wanted_by_searcher ? Searching::yes : Searching::no; }

void* thread_main(void* argument) {
  M* m = static_cast<M*>(argument);
  begin_m(m);
  pthread_setname_np(pthread_self(), "magpie");
  base::ask_for_slices(0);  // it inherited its maker's
  runtime->chaos.be_born_late();
  if (P* p = runtime->threads.take_wanted(m)) begin_with(*runtime, m, p);
  run_loop(m);
  end_m(m);
  return nullptr;
}

}  // namespace

void be_punctual(M* m) {
  if (m->timer_slack_before_ns != 0) return;
  m->timer_slack_before_ns = prctl(PR_GET_TIMERSLACK);
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
}

void end_m(M* m) {
  if (m->spare != nullptr) {
    runtime->stacks.give(std::exchange(m->spare, nullptr));
  }
  runtime->pins.release(m);
  runtime->preemption.block_again(m);
  close_signal_stack(m);
  if (m->timer_slack_before_ns != 0) {
    prctl(PR_SET_TIMERSLACK, std::exchange(m->timer_slack_before_ns, 0));
  }
  base::note_own_sleeps_in(nullptr);
  set_current_m(nullptr);
}

void Threads::prepare(M* m) {
  m->spare = runtime->stacks.take();
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

// Records are never given back, so that whoever has heard of an M may look at it: sysmon, those who wake it.
M* Threads::reuse_ended() {
  M* found = nullptr;
  {
    std::lock_guard hold(lock_);
    for_each([&](M* m) {
      if (found == nullptr && m->has_ended) found = m;
    });
    if (found == nullptr) return nullptr;
    found->has_ended = false;
    count_.store(count() + 1, base::relaxed);
  }
  if (!found->never_ran) pthread_join(found->thread, nullptr);  // it is about to end, or has
  try {
    prepare(found);
  } catch (...) {
    found->never_ran = true;
    note_ended(found);
    throw;
  }
  return found;
}

M* Threads::publish(std::unique_ptr<M> m) {
  std::lock_guard hold(lock_);
  m->older = newest_.load(base::relaxed);
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

// Outside the runtime, or on a thread that no P waits for.
bool Threads::make() {
  {
    std::lock_guard hold(lock_);
    if (stop_) return false;
    ++making_;
  }
  bool made = make_one();
  std::lock_guard hold(lock_);
  --making_;
  return made;
}

bool Threads::make_one() {
  if (is_full()) return false;
  AllowedInside why(
      "only if there is no maker, as no thread could be made for it at the beginning");
  try {
    M* m = reuse_ended();
    if (m == nullptr) m = publish(new_m());  // before it runs: others may look for it
    m->p = nullptr;
    m->searching = false;
    note_unborn(1);
    int error = base::os().create_thread(&m->thread, nullptr, thread_main, m);
    if (error == 0) return true;
    note_unborn(-1);
    runtime->stacks.give(std::exchange(m->spare, nullptr));
    m->never_ran = true;
    note_ended(m);
    complain(std::strerror(error));  // now that it does not count any more
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  }
  return false;
}

bool Threads::start(P* p, Searching searching) {
  if (!may_try_now() || is_full()) return false;
  {
    std::lock_guard hold(lock_);
    if (stop_) return false;
    p->wanted_by_searcher = searching == Searching::yes;
    p->wanted_since_ns = base::now_ns();
    p->next_idle = std::exchange(wanted_, p);
    wanted_count_ = wanted_count_ + 1;
  }
  if (has_maker_) {
    asked_.set();
  } else {
    make_for_wanted();
  }
  return true;
}

bool Threads::lacks_threads() {
  std::lock_guard hold(lock_);
  return wanted_count_ > unborn_;
}

void Threads::note_unborn(int change) {
  std::lock_guard hold(lock_);
  unborn_ += change;
}

void Threads::make_for_wanted() {
  while (lacks_threads()) {
    if (make()) continue;
    if (P* p = pop_wanted()) do_without_thread(*runtime, p, wanted_by(p));
  }
}

void Threads::start_spares(std::size_t waiting, std::size_t most) {
  if (!may_try_now() || is_full()) return;
  if (!has_maker_) {
    (void)make();
    return;
  }
  {
    std::lock_guard hold(lock_);
    spares_wanted_ = static_cast<int>(std::clamp<std::size_t>(waiting, 1, most));
  }
  asked_.set();
}

void Threads::start_maker() {
  has_maker_ = base::os().create_thread(
                   &maker_, nullptr,
                   [](void* self) -> void* {
                     static_cast<Threads*>(self)->serve_requests();
                     return nullptr;
                   },
                   this) == 0;
}

void Threads::stop_maker() {
  {
    std::lock_guard hold(lock_);
    stop_ = true;
  }
  asked_.set();
  if (has_maker_) pthread_join(maker_, nullptr);
  while (is_making()) sched_yield();  // without a maker: some thread that is about to leave
}

bool Threads::is_making() {
  std::lock_guard hold(lock_);
  return making_ != 0;
}

void Threads::ask_for_refresh() {
  {
    std::lock_guard hold(lock_);
    refresh_wanted_ = true;
  }
  asked_.set();
}

P* Threads::unlink_wanted_locked(P** link) {
  P* p = *link;
  if (p == nullptr) return nullptr;
  *link = p->next_idle;
  wanted_count_ = wanted_count_ - 1;
  return p;
}

P* Threads::pop_wanted() {
  std::lock_guard hold(lock_);
  return unlink_wanted_locked(&wanted_);
}

P* Threads::take_wanted(M* m) {
  std::lock_guard hold(lock_);
  --unborn_;
  P* p = unlink_wanted_locked(&wanted_);
  m->searching = p != nullptr && p->wanted_by_searcher;
  return p;
}

P* Threads::take_back_wanted(std::int64_t since_ns) {
  std::lock_guard hold(lock_);
  P** link = &wanted_;
  while (*link != nullptr && (*link)->wanted_since_ns > since_ns) link = &(*link)->next_idle;
  return unlink_wanted_locked(link);
}

void Threads::give_back_wanted(Runtime& rt) {
  while (P* p = pop_wanted()) do_without_thread(rt, p, wanted_by(p));
}

void Threads::serve_requests() {
  pthread_setname_np(pthread_self(), "magpie-maker");
  base::ask_for_slices(kMakersSliceNs);
  for (;;) {
    asked_.wait();
    int spares;
    bool refresh;
    {
      std::lock_guard hold(lock_);
      if (stop_) return;  // the runtime ends: what still waits is not needed
      spares = std::exchange(spares_wanted_, 0);
      refresh = std::exchange(refresh_wanted_, false);
    }
    make_for_wanted();
    if (spares > 0) make_spares(spares);
    if (refresh) refresh_procs(*runtime);
  }
}

// Those that are about to begin, or have gone to sleep since, will do.
bool Threads::lacks_spares(int count) {
  std::lock_guard hold(lock_);
  return runtime->idle.sleeping_threads() + unborn_ - wanted_count_ < count;
}

// Who asked again meanwhile asked for these.
void Threads::make_spares(int count) {
  for (int made = 0; made < count && lacks_spares(count) && make(); ++made) {
  }
  std::lock_guard hold(lock_);
  spares_wanted_ = 0;
}

void Threads::note_ended(M* m) {
  std::lock_guard hold(lock_);
  m->has_ended = true;
  count_.store(count() - 1, base::relaxed);
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

// Nobody makes more, see stop_maker(). The oldest is the caller. Sysmon says so if it takes long.
void Threads::join_all() {
  for_each([&](M* m) {
    if (m->older != nullptr && !m->never_ran) pthread_join(m->thread, nullptr);
  });
}

}  // namespace magpie::sched
