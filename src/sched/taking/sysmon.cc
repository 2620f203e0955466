#include "sched/taking/sysmon.h"

#include <sys/prctl.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu_slices.h"
#include "base/guard.h"
#include "base/os.h"
#include "base/other_thread.h"
#include "sched/core/queues.h"
#include "sched/rest/fire.h"
#include "sched/rest/rest.h"
#include "sched/rest/wake.h"
#include "sched/run/procs.h"
#include "sched/run/runtime.h"
#include "sched/run/schedtrace.h"
#include "sched/run/short_way.h"
#include "sched/taking/bound.h"
#include "sched/taking/free_cpu.h"
#include "sched/taking/hand_off.h"
#include "sched/taking/preempt.h"

namespace magpie::sched {
namespace {

constexpr std::int64_t kMicrosecond = 1'000;
constexpr std::int64_t kMillisecond = 1'000'000;

// While all Ps are held and timers are armed: a goroutine that loops must not make them late.
constexpr std::int64_t kLongestGapWithTimersNs = 1 * kMillisecond;

// A new thread has begun by then, unless it waits for a lock.
constexpr std::int64_t kBirthNs = 1 * kMillisecond;
constexpr std::int64_t kPatienceAtTheEndNs = 2'000 * kMillisecond;

// CPU time that the threads which hold Ps have used.
std::int64_t cpu_ns_of_holders() {
  std::int64_t used = 0;
  for (P* p : runtime->ps.in_use()) {
    M* m = p->holder.load(base::acquire);
    if (m != nullptr) used += base::cpu_ns_of(m->os.tid.load(base::relaxed));
  }
  return used;
}

// Goroutines wait that only the holder of their P can take.
bool some_are_out_of_sight() {
  std::span<P* const> ps = runtime->ps.in_use();
  return std::any_of(ps.begin(), ps.end(), [](P* p) { return p->has_out_of_sight(); });
}

// [sysmon-sleep] Some P is neither idle (`idle` of them are) nor held by an M outside the runtime.
bool some_are_inside(std::uint32_t idle) {
  std::uint32_t quiet = idle;
  for (P* p : runtime->ps.in_use()) {
    M* m = p->holder.load(base::acquire);
    if (m != nullptr && m->grip.is_outside()) ++quiet;
  }
  return quiet != runtime->ps.count();
}

// [sysmon-sleep] A P is idle for any goroutine that becomes ready, none is ready, and an M has the
// timer duty.
bool is_needed_by_nobody(std::uint32_t idle) {
  bool quiet = idle != 0 && !some_are_inside(idle) && !runtime->world.stopping() &&
               !runtime->threads.maker.has_wanted() && !work_is_visible() &&
               !some_are_out_of_sight();
  if (!quiet) return false;
  std::int64_t earliest = earliest_timer_ns();
  return earliest == kNever || runtime->timer_duty.covers(earliest);
}

// run() waits for Ms that do not come back from user code.
void warn_of_those_that_run_on() {
  runtime->threads.for_each([](M* m) {
    if (m->current == nullptr) return;
    base::warn(
        "main has returned; run() waits for a goroutine on thread %d that runs without calling "
        "the runtime, is in blocking(), or waits for what is none of Magpie's, such as a "
        "std::mutex; one that a dropped goroutine holds is never unlocked",
        static_cast<int>(m->os.tid.load(base::relaxed)));
  });
}

}  // namespace

int Sysmon::start() {
  return base::os().create_thread(
      &thread_, nullptr,
      [](void* self) -> void* {
        static_cast<Sysmon*>(self)->run();
        return nullptr;
      },
      this);
}

void Sysmon::stop() {
  stop_.store(true, base::relaxed);
  event_.set();
  pthread_join(thread_, nullptr);
}

void Sysmon::run() {
  pthread_setname_np(pthread_self(), "magpie-sysmon");
  prctl(PR_SET_TIMERSLACK, 1'000UL);
  base::ask_for_slices(100 * kMicrosecond);
  gap_ns_ = kUsualGapNs;
  event_.wait();
  while (!stop_.load(base::relaxed)) {
    if (runtime->world.ending()) return wait_for_the_end();
    look_around();
    sleep_until_next_look();
  }
}

void Sysmon::look_around() {
  now_ns_ = base::now_ns();
  something_happened_ = false;
  next_ns_ = network_look_ns_ = runtime->network.look_after(now_ns_);
  for (P* p : runtime->ps.in_use()) look_at(p);
  if (valve_.act()) look_again_in(kUsualGapNs);
  next_ns_ = std::min(next_ns_, runtime->without_p.look(now_ns_));
  look_at_those_without_thread();
  look_at_idle_ps();
  if (runtime->world.stopping()) runtime->threads.maker.give_back_wanted();
  if (procs_refresh_is_due()) runtime->threads.maker.ask_for_refresh();
  runtime->schedtrace.print_if_due(now_ns_);
  be_chaotic();
}

void Sysmon::sleep_until_next_look() {
  gap_ns_ = something_happened_ ? kUsualGapNs : std::min(2 * gap_ns_, kLongestGapNs);
  if (gap_ns_ == kLongestGapNs && fall_asleep()) {
    gap_ns_ = kUsualGapNs;
    return;
  }
  look_again_in(gap_ns_);
  std::int64_t earliest = earliest_timer_ns();
  bool nobody_else_fires = runtime->search.view().idle == 0 || no_thread_comes();
  if (earliest != kNever && nobody_else_fires) {
    std::int64_t until_due = std::max(earliest - now_ns_, Preemption::kStopsWithinNs);
    look_again_in(std::min(kLongestGapWithTimersNs, until_due));
  } else if (earliest - now_ns_ <= 2 * kLongestGapNs) {
    see_to_timer(nullptr, earliest);  // [timer-duty] the keeper may have gone to work
  }
  next_look_ns_.store(next_ns_, base::relaxed);
  (void)event_.wait_until(next_ns_);
}

// Nothing ran between two looks: sysmon sleeps until an M takes an idle P.
bool Sysmon::fall_asleep() {
  std::uint64_t turns = all_turns();
  std::int64_t used = cpu_ns_of_holders();
  bool still = std::exchange(turns_seen_, turns) == turns;
  still &= std::exchange(cpu_of_holders_seen_ns_, used) == used;
  bool has_more_to_do = runtime->schedtrace.is_on() || runtime->chaos.is_on() ||
                        network_look_ns_ != kNever || runtime->watcher.slow_ns() != 0;
  if (!still || runtime->without_p.any() || has_more_to_do) return false;
  if (std::int64_t earliest = earliest_timer_ns(); earliest != kNever)
    see_to_timer(nullptr, earliest);  // [timer-duty] the keeper may hold a P now
  auto count_idle = [&] { return runtime->search.view().idle; };
  if (!is_needed_by_nobody(count_idle())) return false;
  sleep_.sleep_unless_needed(
      count_idle,
      [&](std::uint32_t idle) { return !is_needed_by_nobody(idle) || stop_.load(base::relaxed); },
      [&] { event_.wait(); });
  return true;
}

// Main has returned. An M leaves when its goroutine blocks or yields. After a while sysmon takes
// the Ps of the others, whose goroutines then end at their next call into the runtime, and closes
// the short way, so that goroutines that only lock and unlock what is free enter the runtime too.
// Sysmon does not do so at once: a goroutine that ends while it holds a lock that is none of
// Magpie's keeps others from ending.
void Sysmon::wait_for_the_end() {
  // [in-place] An M that came back before sysmon named its successor has not woken it, and no M
  // looks at the successor any more.
  runtime->threads.for_each([&](M* m) { wake_successor(m, kAnyCpu); });
  std::int64_t warns_at = base::now_ns() + kPatienceAtTheEndNs;
  bool has_warned = false;
  for (;;) {
    const std::int64_t next_ns = base::now_ns() + kLongestGapNs;
    while (!stop_.load(base::relaxed) && (now_ns_ = base::now_ns()) < next_ns)
      (void)event_.wait_until(next_ns);
    if (stop_.load(base::relaxed)) return open_short_way();
    close_short_way();
    for (P* p : runtime->ps.in_use()) {
      withdraw_request(p);
      if (M* m = p->holder.load(base::acquire)) take_for_stopped_world(p, m);
    }
    if (now_ns_ >= warns_at && !std::exchange(has_warned, true)) warn_of_those_that_run_on();
  }
}

// A P is idle although goroutines wait: there was no thread for it. Perhaps there is one now.
void Sysmon::look_at_idle_ps() {
  Search::View view = runtime->search.view();
  if (view.idle == 0 || view.searching != 0) return;
  if (work_is_visible()) wake_searcher(nullptr);
  if (no_thread_comes() && earliest_timer_ns() <= now_ns_) stand_in_.fire_timers();
}

// A thread that is being made for a P may need a lock before it can begin, perhaps the allocator's.
// A preempted goroutine may hold that lock. So the P goes to the preempted goroutine, which brings
// a thread of its own.
void Sysmon::look_at_those_without_thread() {
  if (runtime->global.stopped() == 0 || !runtime->threads.maker.has_wanted()) return;
  look_again_in(kBirthNs);
  while (P* p = runtime->threads.maker.take_back_wanted(now_ns_ - kBirthNs)) {
    bool was_for_searcher = p->wanted_by_searcher;
    G* held = runtime->global.pop_stopped();
    if (held == nullptr)
      return start_thread_for(p, was_for_searcher ? Searching::yes : Searching::no);
    if (was_for_searcher) {
      base::Guard hold(runtime->idle.lock());
      runtime->idle.unbook_searcher_locked();
    }
    M* its = hand_p_to_thread_of(p, held);
    if (its == nullptr) return;  // the runtime ends
    sched::wake(its);
    if (was_for_searcher) look_again_for_others();
  }
}

}  // namespace magpie::sched
