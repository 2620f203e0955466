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
#include "sched/free_cpu.h"
#include "sched/preempt.h"
#include "sched/procs.h"
#include "sched/queues.h"
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
// It was inside, or there was no thread: the first time, then twice as long each time.
constexpr std::int64_t kRetryGapNs = 50 * kMicrosecond;
// While all Ps are held and timers are armed: a loop must not make them late.
constexpr std::int64_t kLongestGapWithTimersNs = 1 * kMillisecond;

// CPU time after which a goroutine gives way: to something urgent, to one that was woken; to others after its slice.
constexpr std::int64_t kTurnBeforeUrgentNs = 400 * kMicrosecond;
constexpr std::int64_t kTurnBeforeWokenNs = 2 * kMillisecond;
// A thread that waits for a CPU keeps its P for so long, in time that passes; or for two slices if that is longer.
constexpr std::int64_t kLongestTurnNs = 10 * kMillisecond;
constexpr std::uint64_t kLooksIntoRing = 8;
// A goroutine that was not asleep in the kernel for this long is not blocked.
constexpr std::int64_t kBlockedNs = 200 * kMicrosecond;
// Of a P: goroutines that were stopped get one in this many parts of its time, if others wait.
constexpr std::int64_t kPartsPerStopped = 4;

constexpr std::int64_t kBirthNs =
    1 * kMillisecond;  // a thread has begun by then, unless it waits for a lock
constexpr std::int64_t kPatienceAtTheEndNs = 2'000 * kMillisecond;

// A record is always a G, if not always the same; a wrong guess costs one early preemption.
bool is_woken(const G* g) {
  return g != nullptr && g->state.load(base::relaxed) == GState::runnable;
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

void Sysmon::look_at(Runtime& rt, P* p) {
  M* m = p->holder.load(base::acquire);
  P::Seen& seen = p->seen;
  if (m == nullptr) {
    seen = P::Seen{};
    return;
  }
  std::uint64_t turns = p->turns();
  if (m != seen.holder || turns != seen.turns) {
    seen.turn = P::Seen::Turn{};
    seen.turn.since_ns = now_ns_;
    seen.turn.cpu_ns = base::cpu_ns_of(m->tid.load(base::relaxed));
    seen.holder = m;
    seen.turns = turns;
    ask_for_turns_of_others(rt, p);
  }
  if (rt.world.stopping()) {
    take_for_stopped_world(rt, p, m);
    return retry_later(p, kUsualGapNs);
  }
  valve_.look_at(rt, m, now_ns_ - seen.turn.since_ns);
  if (m->is_in_blocking_call()) {
    look_at_blocking_call(rt, p, m);
  } else {
    look_at_long_runner(rt, p, m);
  }
}

void Sysmon::look_at_blocking_call(Runtime& rt, P* p, M* m) {
  Need need = what_waits_for(rt, p);
  if (need == Need::none) return;
  std::uint32_t call = m->blocking_calls.load(base::relaxed);
  if (std::exchange(p->seen.turn.blocking_call, call) != call) {
    look_again_in(kBlockingCallGapNs);
  } else {
    take(rt, p, m, Because::blocked, need);
  }
}

void Sysmon::look_at_long_runner(Runtime& rt, P* p, M* m) {
  Need need = what_waits_for(rt, p);
  if (need == Need::none) return;
  P::Seen::Turn& turn = p->seen.turn;
  std::int64_t passed = now_ns_ - turn.since_ns;
  if (passed < kTurnBeforeUrgentNs) return look_again_in(kTurnBeforeUrgentNs - passed);

  // Asleep, or busy? Its clock tells, read twice.
  pid_t thread = m->tid.load(base::relaxed);
  std::int64_t clock = base::cpu_ns_of(thread);
  std::int64_t since_look = now_ns_ - turn.looked_ns;
  if (turn.looked_ns == 0 || since_look >= kBlockedNs) {
    bool used_little = turn.looked_ns != 0 && clock - turn.looked_cpu_ns < since_look / 8;
    turn.looked_cpu_ns = clock;
    turn.looked_ns = now_ns_;
    if (used_little && base::is_asleep_in_kernel(thread))
      return take(rt, p, m, Because::blocked, need);
  }

  if (!turn.stretch.has_begun()) turn.stretch.length_ns(thread, clock);
  std::int64_t slice_ns = std::chrono::nanoseconds(rt.options.time_slice).count();
  std::int64_t own_ns = need == Need::urgent  ? kTurnBeforeUrgentNs
                        : need == Need::woken ? std::min(slice_ns, kTurnBeforeWokenNs)
                                              : slice_ns;
  std::int64_t most_ns =
      need == Need::others ? std::max(2 * slice_ns, kLongestTurnNs) : kLongestTurnNs;
  std::int64_t used = clock - turn.cpu_ns;
  bool can_be_stopped = rt.options.preempt && rt.preemption.works();
  if (can_be_stopped && used >= own_ns) return take(rt, p, m, Because::ran_long, need);
  if (can_be_stopped && passed >= most_ns) return take(rt, p, m, Because::was_descheduled, need);
  look_again_in(std::clamp(own_ns - used, kRetryGapNs, kUsualGapNs));
}

// Goroutines that wake each other, one after the other, are one turn; and the P comes to look at what waits elsewhere once in
// 61 turns. If that takes long the holder is asked to do both at its next step. A wish that gets lost between the
// holder's own changes of the same counters is repeated at the next look.
void Sysmon::ask_for_turns_of_others(Runtime& rt, P* p) {
  P::Seen& seen = p->seen;
  std::uint64_t ticks = p->counters.ticks.read(), looks = p->counters.looks.read();
  if (std::exchange(seen.ticks, ticks) != ticks) seen.ticks_since_ns = now_ns_;
  if (std::exchange(seen.looks, looks) != looks) seen.looks_since_ns = now_ns_;
  bool others_wait = !p->queue.looks_empty() || !rt.global.empty() || p->has_out_of_sight();
  if (!others_wait) return;
  if (now_ns_ - seen.ticks_since_ns >= P::kLongestChainNs) p->end_chain();
  if (now_ns_ - seen.looks_since_ns >= P::kLongestChainNs) p->ticks_to_look = 0;
  look_again_in(P::kLongestChainNs);
}

Sysmon::Need Sysmon::what_waits_for(Runtime& rt, P* p) const {
  // What the holder has set aside for itself nobody else finds, idle or not.
  bool out_of_sight = p->has_out_of_sight();
  Search::View view = rt.search.view();
  bool others_come = view.searching != 0 || (view.idle != 0 && !no_thread_comes(rt));
  if (!out_of_sight && others_come) return Need::none;
  if (p->timers.earliest_ns() <= now_ns_ || rt.global.urgent() != 0) return Need::urgent;
  if (is_woken(p->queue.next.peek()) || is_woken(p->inbox.glance())) return Need::woken;
  // Also behind some that have not begun: each of those may run long.
  for (std::uint64_t others = 0; others < kLooksIntoRing; ++others) {
    G* g = p->queue.glance(others);
    if (g == nullptr) break;
    if (is_woken(g)) return Need::woken;
  }
  return out_of_sight || work_is_visible(rt) ? Need::others : Need::none;
}

void Sysmon::retry_later(P* p, std::int64_t longest_gap_ns) {
  std::int64_t& gap = p->seen.turn.retry_gap_ns;
  gap = gap == 0 ? kRetryGapNs : std::min(2 * gap, longest_gap_ns);
  look_again_in(gap);
}

// Beyond the limit on preempted threads, those that were preempted before take turns. What is urgent comes first.
Heir Sysmon::choose_heir(Runtime& rt, P* p, Because because, Need need) {
  bool for_others = because == Because::ran_long && need == Need::others;
  bool too_many =
      rt.preempted.load(base::relaxed) + rt.without_p.computing() >= rt.options.max_preempted;
  // If nobody else waits the P goes straight to the next of them, without a thread in between that finds it.
  bool only_stopped_wait =
      p->queue.looks_empty() && !p->has_out_of_sight() && rt.global.size() == rt.global.held();
  if (for_others && (too_many || only_stopped_wait)) {
    Heir heir = choose_stopped(rt);
    bool some_are_stopped = rt.preempted.load(base::relaxed) + rt.without_p.computing() > 0;
    if (!heir.is_nobody() || (too_many && some_are_stopped)) return heir;
  }
  Heir heir = choose_sleeping_thread(rt);
  if (!heir.is_nobody()) return heir;
  std::size_t waiting = p->queue.size() + rt.global.size();
  rt.threads.start_spares(waiting,
                          because == Because::blocked ? Threads::kMostSpares : kMostSparesForLoops);
  // A preempted goroutine brings a thread with it. It may hold the very lock, malloc's perhaps, that the maker of threads
  // and all who hold Ps wait for. So does any other that is bound.
  heir = choose_stopped(rt);
  return heir.is_nobody() ? choose_bound(rt) : heir;
}

// Whether the thread, which has used up its slice, computes on for sure, so that it is stopped as its P is taken. One that was
// stopped before and has computed ever since need not prove it.
bool Sysmon::computes_on(P* p, M* m) {
  if (valve_.is_open()) return false;
  pid_t thread = m->tid.load(base::relaxed);
  bool went_on_after_stop = m->stopped_before_turn == p->turns();
  return (went_on_after_stop ||
          p->seen.turn.stretch.length_ns(thread, base::cpu_ns_of(thread)) >= kLongStretchNs) &&
         !base::is_asleep_in_kernel(thread);
}

// Nobody is there to take the P over. If goroutines or timers wait in it, it is taken all the same: the goroutines go to the
// global queue, where whoever runs finds them, those that are bound get the P, and timers are fired from an idle P (stand_in.h).
bool Sysmon::is_to_be_given_up(Runtime& rt, P* p) const {
  bool some_wait = !p->queue.looks_empty() || p->has_out_of_sight();
  return no_thread_comes(rt) && (some_wait || p->timers.earliest_ns() <= now_ns_);
}

void Sysmon::take(Runtime& rt, P* p, M* m, Because because, Need need) {
  if (m->grip.is_inside()) return retry_later(p, kUsualGapNs);
  bool ran_long = because == Because::ran_long;
  bool is_stopped = ran_long && computes_on(p, m);
  // Those that run on without a P compete with the others for the CPUs: not too many at a time.
  bool runs_on = because != Because::blocked && !is_stopped;
  if (runs_on && rt.without_p.computing() >= static_cast<int>(rt.ps.count()))
    return retry_later(p, kUsualGapNs);
  Heir heir = choose_heir(rt, p, because, need);
  if (heir.is_nobody() && !is_to_be_given_up(rt, p)) return retry_later(p, kLongestGapNs);
  if (!take_from(m, p)) {
    put_back(rt, heir);
    return retry_later(p, kUsualGapNs);
  }

  // The P is ours. Whoever gets it may block at once.
  wake_successor(rt, m, kAnyCpu);  // of an earlier P: there is room for one
  something_happened_ = true;
  look_again_in(because == Because::blocked ? kBlockingCallGapNs : kUsualGapNs);
  std::int64_t used = base::cpu_ns_of(m->tid.load(base::relaxed)) - p->seen.turn.cpu_ns;
  rt.away.fetch_add(1, base::seq_cst);
  rt.without_p.note(m, now_ns_,
                    because == Because::blocked ? WithoutP::Computes::no : WithoutP::Computes::yes,
                    p->seen.turn.stretch);
  p->counters.handed_off.increment();
  if (because != Because::blocked) p->counters.preempted.increment();
  if (ran_long) {
    p->stopped_again_ns = now_ns_ + (kPartsPerStopped - 1) * used;
  }
  if (m->is_in_blocking_call()) rt.long_calls.note_taken();
  if (need == Need::urgent) p->ticks_to_look = 0;  // look there first
  p->seen = P::Seen{};

  if (heir.is_nobody()) return let_go(rt, p);
  p->end_hold(now_ns_);
  M* next = hand_over(rt, p, heir);
  if (next == nullptr) return;  // the runtime ends
  if (is_stopped) {
    m->successor.set(next);
    rt.preemption.stop(m);
    look_again_in(Preemption::kStopsWithinNs);
  } else {
    sched::wake(rt, next);
  }
}

void Sysmon::take_for_stopped_world(Runtime& rt, P* p, M* m) {
  if (!take_from(m, p)) return;
  rt.away.fetch_add(1, base::seq_cst);
  rt.without_p.note(m, now_ns_, WithoutP::Computes::no);
  p->seen = P::Seen{};
  let_go(rt, p);  // the world may go on again already
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
