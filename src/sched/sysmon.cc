#include "sched/sysmon.h"

#include <sys/prctl.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu_slices.h"
#include "base/os.h"
#include "base/other_thread.h"
#include "sched/bound.h"
#include "sched/find_work.h"
#include "sched/preempt.h"
#include "sched/procs.h"
#include "sched/runtime.h"
#include "sched/schedtrace.h"
#include "sched/timers.h"
#include "sched/wake.h"

namespace magpie::sched {
namespace {

constexpr std::int64_t kMicrosecond = 1'000;
constexpr std::int64_t kMillisecond = 1'000'000;

// The time between two looks: the first while something happens, twice as long with each look at which nothing did.
constexpr std::int64_t kUsualGapNs = 1 * kMillisecond;
constexpr std::int64_t kLongestGapNs = 10 * kMillisecond;
constexpr std::int64_t kBlockingCallGapNs = 20 * kMicrosecond;  // others wait for its P
constexpr std::size_t kMostSparesForLoops = 4;                  // each lasts for a time slice
constexpr std::int64_t kRetryGapNs = 50 * kMicrosecond;  // it was inside, or there was no thread
// While all Ps are held and timers are armed: a loop must not make them late.
constexpr std::int64_t kLongestGapWithTimersNs = 1 * kMillisecond;

// For something urgent a goroutine is taken off the CPU after this long, else after its slice.
constexpr std::int64_t kLeastTurnNs = 500 * kMicrosecond;
constexpr std::int64_t kTurnBeforeWokenNs = 2 * kMillisecond;
constexpr std::uint64_t kLooksIntoRing = 8;
// A goroutine that was not asleep in the kernel for this long is not blocked.
constexpr std::int64_t kBlockedNs = 200 * kMicrosecond;

constexpr std::int64_t kBirthNs =
    1 * kMillisecond;  // a thread has begun by then, unless it waits for a lock

// [grip] What an M outside holds does not change meanwhile.
bool take_from(M* m, const P* p) {
  if (!m->grip.ask()) return false;
  bool holds_it = m->grip.is_outside_for_taker() && p->holder.load(base::relaxed) == m;
  if (holds_it && m->grip.confirm()) return true;
  m->grip.withdraw();
  return false;
}

// A record is always a G, if not always the same; a wrong guess costs one early preemption.
bool is_woken(const G* g) {
  return g != nullptr && g->state.load(base::relaxed) == GState::runnable;
}

std::uint64_t all_turns(Runtime& rt) {
  std::uint64_t turns = 0;
  for (P* p : rt.ps.in_use()) turns += p->turns();
  return turns;
}

// CPU time that the threads which hold Ps have used.
std::int64_t cpu_ns_of_holders(Runtime& rt) {
  std::int64_t used = 0;
  for (P* p : rt.ps.in_use()) {
    M* m = p->holder.load(base::acquire);
    if (m != nullptr) used += base::cpu_ns_of(m->tid.load(base::relaxed));
  }
  return used;
}

// While a P is idle, nothing waits for those that are held; and somebody keeps the watch.
bool is_needed_by_nobody(Runtime& rt) {
  if (rt.search.view().idle == 0) return false;
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

void Sysmon::wake() { event_.set(); }

void Sysmon::watch(Runtime& rt) {
  pthread_setname_np(pthread_self(), "magpie-sysmon");
  prctl(PR_SET_TIMERSLACK, 1'000UL);
  base::ask_for_slices(100 * kMicrosecond);
  gap_ns_ = kUsualGapNs;
  while (!stop_.load(base::relaxed)) {
    now_ns_ = base::now_ns();
    something_happened_ = false;
    next_ns_ = network_look_ns_ = rt.network.look_after(rt, now_ns_);
    for (P* p : rt.ps.in_use()) look_at(rt, p);
    next_ns_ = std::min(next_ns_, rt.without_p.look(rt, now_ns_));
    look_at_those_without_thread(rt);
    if (rt.world.stopping()) rt.threads.give_back_wanted(rt);
    if (procs_refresh_is_due(rt)) rt.threads.ask_for_refresh();
    rt.schedtrace.print_if_due(rt, now_ns_);
    be_chaotic(rt);
    sleep_until_next_look(rt);
  }
}

void Sysmon::sleep_until_next_look(Runtime& rt) {
  gap_ns_ = something_happened_ ? kUsualGapNs : std::min(2 * gap_ns_, kLongestGapNs);
  if (gap_ns_ == kLongestGapNs && fall_asleep(rt)) {
    gap_ns_ = kUsualGapNs;
    return;
  }
  look_again_in(gap_ns_);
  std::int64_t earliest = earliest_timer_ns(rt);
  if (earliest != kNever && rt.search.view().idle == 0) {
    std::int64_t until_due = std::max(earliest - now_ns_, Preemption::kStopsWithinNs);
    look_again_in(std::min(kLongestGapWithTimersNs, until_due));
  } else if (earliest - now_ns_ <= 2 * kLongestGapNs) {
    watch_over(rt, nullptr, earliest);  // [watch] a keeper may have gone to work
  }
  next_look_ns_.store(next_ns_, base::relaxed);
  (void)event_.wait_until(next_ns_);
}

// Nothing ran between two looks: sleeps until somebody begins with a P. One that is held, by a goroutine that blocks its thread,
// does not keep it awake.
bool Sysmon::fall_asleep(Runtime& rt) {
  std::uint64_t turns = all_turns(rt);
  std::int64_t used = cpu_ns_of_holders(rt);
  bool still = std::exchange(turns_seen_, turns) == turns;
  still &= std::exchange(cpu_of_holders_seen_ns_, used) == used;
  if (!still || rt.without_p.any() || rt.schedtrace.is_on() || network_look_ns_ != kNever)
    return false;
  if (std::int64_t earliest = earliest_timer_ns(rt); earliest != kNever)
    watch_over(rt, nullptr, earliest);  // [watch] the keeper may be who holds a P now
  if (!is_needed_by_nobody(rt)) return false;
  asleep_.store(true, base::seq_cst);
  // Between that and the look, as who takes an idle P changes the word that is looked at and then reads asleep_.
  rt.search.before_second_look();
  if (is_needed_by_nobody(rt) && !stop_.load(base::relaxed)) event_.wait();
  asleep_.store(false, base::relaxed);
  return true;
}

void Sysmon::look_at(Runtime& rt, P* p) {
  M* m = p->holder.load(base::acquire);
  P::Seen& seen = p->seen;
  std::uint64_t turns = p->turns();
  if (m == nullptr || m != seen.holder || turns != seen.turns) {
    seen = P::Seen{.holder = m, .turns = turns, .since_ns = now_ns_};
    if (m == nullptr) return;
  }
  if (rt.world.stopping()) {
    take_for_stopped_world(rt, p, m);
    look_again_in(kRetryGapNs);
  } else if (m->is_in_blocking_call()) {
    look_at_blocking_call(rt, p, m);
  } else {
    look_at_long_runner(rt, p, m);
  }
}

void Sysmon::look_at_blocking_call(Runtime& rt, P* p, M* m) {
  Need need = what_waits_for(rt, p);
  if (need == Need::none) return;
  std::uint32_t call = m->blocking_calls.load(base::relaxed);
  if (std::exchange(p->seen.blocking_call, call) != call) {
    look_again_in(kBlockingCallGapNs);
  } else {
    take(rt, p, m, Because::blocked, need);
  }
}

void Sysmon::look_at_long_runner(Runtime& rt, P* p, M* m) {
  P::Seen& seen = p->seen;
  std::int64_t turn_ns = now_ns_ - seen.since_ns;
  Need need = what_waits_for(rt, p);
  if (need == Need::none) return;
  if (turn_ns < kLeastTurnNs) return look_again_in(kLeastTurnNs - turn_ns);

  // Asleep, or busy? Its clock tells, read twice.
  pid_t thread = m->tid.load(base::relaxed);
  std::int64_t used = base::cpu_ns_of(thread);
  std::int64_t passed = now_ns_ - seen.cpu_at_ns;
  if (seen.cpu_ns < 0 || passed >= kBlockedNs) {
    bool used_little = seen.cpu_ns >= 0 && used - seen.cpu_ns < passed / 8;
    seen.cpu_ns = used;
    seen.cpu_at_ns = now_ns_;
    if (used_little && base::is_asleep_in_kernel(thread))
      return take(rt, p, m, Because::blocked, need);
  }
  std::int64_t slice_ns = std::chrono::nanoseconds(rt.options.time_slice).count();
  if (need == Need::woken) slice_ns = std::min(slice_ns, kTurnBeforeWokenNs);
  bool over = need == Need::urgent || turn_ns >= slice_ns;
  bool can_be_stopped = rt.options.preempt && rt.preemption.works();
  if (over && can_be_stopped) return take(rt, p, m, Because::ran_long, need);
  look_again_in(over ? kUsualGapNs : std::min(slice_ns - turn_ns, kUsualGapNs));
}

Sysmon::Need Sysmon::what_waits_for(Runtime& rt, P* p) const {
  Search::View view = rt.search.view();
  if (view.searching != 0 || view.idle != 0) return Need::none;  // those find what there is
  if (p->timers.earliest_ns() <= now_ns_ || rt.global.urgent() != 0) return Need::urgent;
  if (is_woken(p->queue.next.peek())) return Need::woken;
  // Also behind some that have not begun: each of those may run long.
  for (std::uint64_t others = 0; others < kLooksIntoRing; ++others) {
    G* g = p->queue.glance(others);
    if (g == nullptr) break;
    if (is_woken(g)) return Need::woken;
  }
  return work_is_visible(rt) ? Need::others : Need::none;
}

void Sysmon::take(Runtime& rt, P* p, M* m, Because because, Need need) {
  something_happened_ = true;
  bool is_hog = because == Because::ran_long;
  // Beyond the limit on preempted threads, those that were preempted before take turns. What is urgent comes first.
  // If nobody else waits the P goes straight to the next of them, without a thread in between that finds it.
  G* instead = nullptr;
  M* next = nullptr;
  bool too_many = rt.preempted.load(base::relaxed) >= rt.options.max_preempted;
  bool only_held_wait = p->queue.looks_empty() && rt.global.size() == rt.global.held();
  if (is_hog && need == Need::others && (too_many || only_held_wait))
    instead = rt.global.pop_held();
  if (instead == nullptr) {
    if (is_hog && too_many && need == Need::others) return look_again_in(kUsualGapNs);
    std::lock_guard hold(rt.idle.lock());
    next = rt.world.stopping() ? nullptr : rt.idle.pop_m_locked();
  }
  if (instead == nullptr && next == nullptr) {
    std::size_t waiting = p->queue.size() + rt.global.size();
    std::size_t most = is_hog ? kMostSparesForLoops : Threads::kMostSpares;
    rt.threads.start_spares(waiting, most);
    // A preempted goroutine brings a thread with it. It may hold the very lock, malloc's perhaps, that the maker of threads
    // and all who hold Ps wait for.
    instead = rt.global.pop_held();
    if (instead == nullptr) return look_again_in(kRetryGapNs);
  }

  if (!take_from(m, p)) {
    if (instead != nullptr) {
      rt.global.push_held(instead);
    } else {
      std::lock_guard hold(rt.idle.lock());
      if (rt.world.ending()) {
        next->handed = nullptr;
        sched::wake(rt, next);
      } else {
        rt.idle.push_locked(next);
      }
    }
    // `next` may have seen work and gone to sleep all the same, as it was about to be handed a P.
    look_again_for_others(rt);
    return look_again_in(kRetryGapNs);
  }

  // The P is ours. Whoever gets it may block at once.
  look_again_in(because == Because::blocked ? kBlockingCallGapNs : kUsualGapNs);
  rt.away.fetch_add(1, base::seq_cst);
  rt.without_p.note(m, now_ns_);
  p->end_hold(now_ns_);
  p->counters.handed_off.increment();
  if (is_hog) p->counters.preempted.increment();
  if (m->is_in_blocking_call()) rt.long_calls.note_taken();
  if (need == Need::urgent) p->ticks_to_global = 0;  // look there first
  p->seen = P::Seen{};
  if (instead != nullptr) {
    next = hand_p_to_thread_of(rt, p, instead);
    if (next == nullptr) return;  // the runtime ends
  } else {
    next->handed = p;
    next->handed_searching = false;
  }
  if (is_hog) {
    m->successor.store(next, base::release);
    rt.preemption.stop(m);
    look_again_in(Preemption::kStopsWithinNs);
  } else {
    sched::wake(rt, next);
  }
}

void Sysmon::take_for_stopped_world(Runtime& rt, P* p, M* m) {
  if (!take_from(m, p)) return;
  rt.away.fetch_add(1, base::seq_cst);
  rt.without_p.note(m, now_ns_);
  p->seen = P::Seen{};
  let_go(rt, p);  // the world may go on again already
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
