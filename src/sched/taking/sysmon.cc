#include "sched/taking/sysmon.h"

#include <sys/prctl.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu_slices.h"
#include "base/os.h"
#include "base/other_thread.h"
#include "sched/core/find_work.h"
#include "sched/core/queues.h"
#include "sched/rest/fire.h"
#include "sched/rest/wake.h"
#include "sched/run/procs.h"
#include "sched/run/runtime.h"
#include "sched/run/schedtrace.h"
#include "sched/taking/bound.h"
#include "sched/taking/free_cpu.h"
#include "sched/taking/preempt.h"

namespace magpie::sched {
namespace {

constexpr std::int64_t kMicrosecond = 1'000;
constexpr std::int64_t kMillisecond = 1'000'000;

// While all Ps are held and timers are armed: a loop must not make them late.
constexpr std::int64_t kLongestGapWithTimersNs = 1 * kMillisecond;

// A thread has begun by then, unless it waits for a lock.
constexpr std::int64_t kBirthNs = 1 * kMillisecond;
constexpr std::int64_t kPatienceAtTheEndNs = 2'000 * kMillisecond;

// CPU time that the threads which hold Ps have used.
std::int64_t cpu_ns_of_holders(Runtime& rt) {
  std::int64_t used = 0;
  for (P* p : rt.ps.in_use()) {
    M* m = p->holder.load(base::acquire);
    if (m != nullptr) used += base::cpu_ns_of(m->tid.load(base::relaxed));
  }
  return used;
}

// Goroutines wait that only the holder of their P can take.
bool some_are_out_of_sight(Runtime& rt) {
  std::span<P* const> ps = rt.ps.in_use();
  return std::any_of(ps.begin(), ps.end(), [](P* p) { return p->has_out_of_sight(); });
}

// [sysmon-sleep] A P is neither idle, as so many are, nor held by somebody outside.
bool some_are_inside(Runtime& rt, std::uint32_t idle) {
  std::uint32_t settled = idle;
  for (P* p : rt.ps.in_use()) {
    M* m = p->holder.load(base::acquire);
    if (m != nullptr && m->grip.is_outside()) ++settled;
  }
  return settled != rt.ps.count();
}

// [sysmon-sleep] An idle P is there for whoever becomes ready, nobody is, and somebody keeps the watch.
bool is_needed_by_nobody(Runtime& rt, std::uint32_t idle) {
  bool quiet = idle != 0 && !some_are_inside(rt, idle) && !rt.world.stopping() &&
               !rt.threads.has_wanted() && !work_is_visible(rt) && !some_are_out_of_sight(rt);
  if (!quiet) return false;
  std::int64_t earliest = earliest_timer_ns(rt);
  return earliest == kNever || rt.watch.covers(earliest);
}

}  // namespace

void Sysmon::start(Runtime& rt) {
  running_ = base::os().create_thread(
                 &thread_, nullptr,
                 [](void* runtime_of_it) -> void* {
                   auto& its = *static_cast<Runtime*>(runtime_of_it);
                   its.sysmon.watch(its);
                   return nullptr;
                 },
                 &rt) == 0;
  if (!running_)
    base::warn(
        "no thread to look after goroutines that block or run long: they keep their processors");
}

void Sysmon::stop() {
  if (!running_) return;
  stop_.store(true, base::relaxed);
  event_.set();
  pthread_join(thread_, nullptr);
}

void Sysmon::watch(Runtime& rt) {
  pthread_setname_np(pthread_self(), "magpie-sysmon");
  prctl(PR_SET_TIMERSLACK, 1'000UL);
  base::ask_for_slices(100 * kMicrosecond);
  gap_ns_ = kUsualGapNs;
  while (!stop_.load(base::relaxed)) {
    if (rt.world.ending()) return wait_for_the_end(rt);
    look_around(rt);
    sleep_until_next_look(rt);
  }
}

void Sysmon::look_around(Runtime& rt) {
  now_ns_ = base::now_ns();
  something_happened_ = false;
  next_ns_ = network_look_ns_ = rt.network.look_after(rt, now_ns_);
  for (P* p : rt.ps.in_use()) look_at(rt, p);
  if (valve_.act(rt)) look_again_in(kUsualGapNs);
  next_ns_ = std::min(next_ns_, rt.without_p.look(rt, now_ns_));
  look_at_those_without_thread(rt);
  look_at_idle_ps(rt);
  if (rt.world.stopping()) rt.threads.give_back_wanted(rt);
  if (procs_refresh_is_due(rt)) rt.threads.ask_for_refresh();
  rt.schedtrace.print_if_due(rt, now_ns_);
  be_chaotic(rt);
}

void Sysmon::sleep_until_next_look(Runtime& rt) {
  gap_ns_ = something_happened_ ? kUsualGapNs : std::min(2 * gap_ns_, kLongestGapNs);
  if (gap_ns_ == kLongestGapNs && fall_asleep(rt)) {
    gap_ns_ = kUsualGapNs;
    return;
  }
  look_again_in(gap_ns_);
  std::int64_t earliest = earliest_timer_ns(rt);
  bool nobody_else_fires = rt.search.view().idle == 0 || no_thread_comes(rt);
  if (earliest != kNever && nobody_else_fires) {
    std::int64_t until_due = std::max(earliest - now_ns_, Preemption::kStopsWithinNs);
    look_again_in(std::min(kLongestGapWithTimersNs, until_due));
  } else if (earliest - now_ns_ <= 2 * kLongestGapNs) {
    watch_over(rt, nullptr, earliest);  // [watch] a keeper may have gone to work
  }
  next_look_ns_.store(next_ns_, base::relaxed);
  (void)event_.wait_until(next_ns_);
}

// Nothing ran between two looks: sleeps until somebody takes an idle P.
bool Sysmon::fall_asleep(Runtime& rt) {
  std::uint64_t turns = all_turns(rt);
  std::int64_t used = cpu_ns_of_holders(rt);
  bool still = std::exchange(turns_seen_, turns) == turns;
  still &= std::exchange(cpu_of_holders_seen_ns_, used) == used;
  bool has_more_to_do = rt.schedtrace.is_on() || rt.chaos.is_on() || network_look_ns_ != kNever;
  if (!still || rt.without_p.any() || has_more_to_do) return false;
  if (std::int64_t earliest = earliest_timer_ns(rt); earliest != kNever)
    watch_over(rt, nullptr, earliest);  // [watch] the keeper may be who holds a P now
  auto count_idle = [&] { return rt.search.view().idle; };
  if (!is_needed_by_nobody(rt, count_idle())) return false;
  sleep_.sleep_unless_needed(
      count_idle,
      [&](std::uint32_t idle) {
        return !is_needed_by_nobody(rt, idle) || stop_.load(base::relaxed);
      },
      [&] { event_.wait(); });
  return true;
}

// Main has returned. Every M leaves by itself; run() waits for those that do not come back from user code.
void Sysmon::wait_for_the_end(Runtime& rt) {
  // [in-place] One that came back before it was told of its successor does not wake it, and nobody looks at it any more.
  rt.threads.for_each([&](M* m) { wake_successor(rt, m, kAnyCpu); });
  std::int64_t until = base::now_ns() + kPatienceAtTheEndNs;
  while (!stop_.load(base::relaxed) && base::now_ns() < until) (void)event_.wait_until(until);
  if (!stop_.load(base::relaxed)) {
    rt.threads.for_each([](M* m) {
      if (m->current == nullptr) return;
      base::warn(
          "main has returned; run() waits for a goroutine on thread %d that runs without calling "
          "the "
          "runtime, is in blocking(), or waits for what is none of Magpie's, such as a std::mutex; "
          "one that a dropped goroutine holds is never unlocked",
          static_cast<int>(m->tid.load(base::relaxed)));
    });
  }
  while (!stop_.load(base::relaxed)) event_.wait();
}

// A P is idle although goroutines wait: there was no thread for it. Perhaps there is one now.
void Sysmon::look_at_idle_ps(Runtime& rt) {
  Search::View view = rt.search.view();
  if (view.idle == 0 || view.searching != 0) return;
  if (work_is_visible(rt)) wake_searcher(rt, nullptr);
  if (no_thread_comes(rt) && earliest_timer_ns(rt) <= now_ns_) stand_in_.fire_timers(rt);
}

// A thread that is being made for a P may need a lock before it can begin, the allocator's perhaps, that a preempted
// goroutine holds. That goroutine brings a thread of its own.
void Sysmon::look_at_those_without_thread(Runtime& rt) {
  if (rt.global.held() == 0 || !rt.threads.has_wanted()) return;
  look_again_in(kBirthNs);
  while (P* p = rt.threads.take_back_wanted(now_ns_ - kBirthNs)) {
    bool was_for_searcher = p->wanted_by_searcher;
    G* held = rt.global.pop_held();
    if (held == nullptr)
      return start_thread_for(rt, p, was_for_searcher ? Searching::yes : Searching::no);
    if (was_for_searcher) {
      std::lock_guard hold(rt.idle.lock());
      rt.search.stop();
    }
    M* its = hand_p_to_thread_of(rt, p, held);
    if (its == nullptr) return;  // the runtime ends
    sched::wake(rt, its);
    if (was_for_searcher) look_again_for_others(rt);
  }
}

}  // namespace magpie::sched
