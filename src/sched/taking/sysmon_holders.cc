// sysmon_holders.cc: sysmon looks at an M that holds a P. Does it block, has it computed for long,
// what waits for its P?
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/other_thread.h"
#include "sched/policy.h"
#include "sched/rest/rest.h"
#include "sched/run/runtime.h"
#include "sched/taking/hand_off.h"
#include "sched/taking/sysmon.h"

namespace magpie::sched {
namespace {

// The M was inside, or there was no thread. The gap before the first retry; it doubles each time.
constexpr std::int64_t kRetryGapNs = 50'000;

// CPU time after which a goroutine gives way to something urgent, and to a goroutine that was
// woken. To others it gives way after its slice.
constexpr std::int64_t kTurnBeforeUrgentNs = 400'000;
constexpr std::int64_t kTurnBeforeWokenNs = 2'000'000;
// A thread that waits for a CPU keeps its P for this long, in real time. If nothing urgent and no
// woken goroutine waits, it keeps the P for two slices, if that is longer.
constexpr std::int64_t kLongestTurnNs = 10'000'000;
// Without preemption a goroutine that calls the runtime gives way after this much CPU time. Such
// programs want to be interrupted seldom.
constexpr std::int64_t kLongestUnstoppedNs = 100'000'000;
constexpr std::uint64_t kLooksIntoRing = 8;
// A thread that was not asleep in the kernel for this long is not blocked.
constexpr std::int64_t kBlockedNs = 200'000;

// A record is always a G, if not always the same. A wrong guess costs one early preemption.
bool is_woken(const G* g) {
  return g != nullptr && g->state.load(base::relaxed) == GState::runnable;
}

}  // namespace

// The thread uses hardly any CPU. Is it asleep, or does it want one? If the kernel does not tell
// (no descriptor is left, for instance), the P is taken later, because the thread was descheduled.
// Where that does not happen, as nothing may be stopped, it is taken to be asleep after that time.
bool Sysmon::is_blocked(pid_t thread, std::int64_t turn_ns) {
  const base::Doing doing = base::doing_of(thread);
  if (doing == base::Doing::not_told)
    return !runtime->can_stop_long_runners() && turn_ns >= kLongestTurnNs;
  return doing != base::Doing::runs;
}

void Sysmon::look_at(P* p) {
  withdraw_request(p);
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
    seen.turn.cpu_ns = base::cpu_ns_of(m->os.tid.load(base::relaxed));
    seen.holder = m;
    seen.turns = turns;
    ask_for_turns_of_others(p);
    end_turn_of_joiner(p);
  }
  if (runtime->world.stopping()) {
    take_for_stopped_world(p, m);
    return retry_later(p, kUsualGapNs);
  }
  valve_.look_at(m, now_ns_ - seen.turn.since_ns);
  if (runtime->watcher.slow_ns() != 0) report_if_slow(p, m);
  if (m->is_in_blocking_call()) {
    look_at_blocking_call(p, m);
  } else {
    look_at_long_runner(p, m);
  }
}

void Sysmon::report_if_slow(P* p, M* m) {
  P::Seen::Turn& turn = p->seen.turn;
  std::int64_t slow_ns = runtime->watcher.slow_ns();
  std::int64_t passed = now_ns_ - turn.since_ns;
  if (turn.is_reported || m->is_in_blocking_call() || !m->grip.is_outside()) return;
  if (passed < slow_ns) return look_again_in(slow_ns - passed);
  turn.is_reported = true;
  runtime->watcher.note_slow(m, passed, base::is_asleep_in_kernel(m->os.tid.load(base::relaxed)));
}

void Sysmon::look_at_blocking_call(P* p, M* m) {
  Need need = what_waits_for(p);
  if (need == Need::none) return;
  std::uint32_t call = m->blocking_calls.load(base::relaxed);
  if (std::exchange(p->seen.turn.blocking_call, call) != call) {
    look_again_in(kBlockingCallGapNs);
  } else {
    take(p, m, Because::blocked, need);
  }
}

void Sysmon::look_at_long_runner(P* p, M* m) {
  Need need = what_waits_for(p);
  if (need == Need::none) return;
  P::Seen::Turn& turn = p->seen.turn;
  std::int64_t passed = now_ns_ - turn.since_ns;
  if (passed < kTurnBeforeUrgentNs) return look_again_in(kTurnBeforeUrgentNs - passed);

  // Is the thread asleep, or busy? Its CPU clock tells, read twice.
  pid_t thread = m->os.tid.load(base::relaxed);
  std::int64_t clock = base::cpu_ns_of(thread);
  std::int64_t since_look = now_ns_ - turn.looked_ns;
  if (turn.looked_ns == 0 || since_look >= kBlockedNs) {
    bool used_little = turn.looked_ns != 0 && clock - turn.looked_cpu_ns < since_look / 8;
    turn.looked_cpu_ns = clock;
    turn.looked_ns = now_ns_;
    if (used_little && is_blocked(thread, passed)) return take(p, m, Because::blocked, need);
  }

  if (!turn.stretch.has_begun()) turn.stretch.measure_ns(thread, clock);
  std::int64_t slice_ns = std::chrono::nanoseconds(runtime->options.time_slice).count();
  std::int64_t own_ns = need == Need::urgent  ? kTurnBeforeUrgentNs
                        : need == Need::woken ? std::min(slice_ns, kTurnBeforeWokenNs)
                                              : slice_ns;
  std::int64_t most_ns =
      need == Need::others ? std::max(2 * slice_ns, kLongestTurnNs) : kLongestTurnNs;
  std::int64_t used = clock - turn.cpu_ns;
  bool can_be_stopped = runtime->can_stop_long_runners();
  if (can_be_stopped && used >= own_ns) return take(p, m, Because::ran_long, need);
  if (can_be_stopped && passed >= most_ns) return take(p, m, Because::was_descheduled, need);
  if (!can_be_stopped && used >= kLongestUnstoppedNs) return ask_to_give_way(p, m);
  look_again_in(std::clamp(own_ns - used, kRetryGapNs, kUsualGapNs));
}

// Without preemption a goroutine may call the runtime for ever without waiting there. Others must
// not wait for that: it gives way at its next entry. For that entry sysmon asks for the P ([grip]),
// and withdraws at its next look. An M that is inside, or that never enters, keeps its P.
void Sysmon::ask_to_give_way(P* p, M* m) {
  look_again_in(kUsualGapNs);
  p->must_give_way = true;
  if (m->grip.ask()) p->seen.asked = m;
}

void Sysmon::withdraw_request(P* p) {
  if (M* m = std::exchange(p->seen.asked, nullptr)) {
    m->grip.withdraw();
    p->must_give_way = false;
  }
}

// Goroutines that wake each other, one after the other, are one turn. And the P looks at what waits
// elsewhere once in 61 turns. If that takes long, sysmon asks the holder to do both at its next
// step. The holder's own changes of the same counters may overwrite the request: then sysmon
// repeats it at the next look.
void Sysmon::ask_for_turns_of_others(P* p) {
  P::Seen& seen = p->seen;
  std::uint64_t ticks = p->counters.ticks.read(), looks = p->counters.looks.read();
  if (std::exchange(seen.ticks, ticks) != ticks) seen.ticks_since_ns = now_ns_;
  if (std::exchange(seen.looks, looks) != looks) seen.looks_since_ns = now_ns_;
  bool others_wait = !p->queue.looks_empty() || !runtime->global.empty() || p->has_out_of_sight();
  if (!others_wait) return;
  if (now_ns_ - seen.ticks_since_ns >= policy::kLongestChainNs) p->end_chain();
  if (now_ns_ - seen.looks_since_ns >= policy::kLongestChainNs) p->ticks_to_look = 0;
  look_again_in(policy::kLongestChainNs);
}

// A goroutine that runs others in place, by joining them, counts turns all the time. So it never
// seems to run long, and looks at its slice itself. Sysmon tells it when others must not wait for
// that. In real time: giving way early does no harm.
void Sysmon::end_turn_of_joiner(P* p) {
  P::Seen& seen = p->seen;
  std::uint64_t begun = p->turns_begun();
  if (std::exchange(seen.begun, begun) != begun) {
    seen.begun_since_ns = now_ns_;
    return;
  }
  Need need = what_waits_for(p);
  if (need != Need::urgent && need != Need::woken) return;
  std::int64_t most_ns = need == Need::urgent ? kTurnBeforeUrgentNs : kTurnBeforeWokenNs;
  std::int64_t passed = now_ns_ - seen.begun_since_ns;
  if (passed < most_ns) return look_again_in(most_ns - passed);
  p->slice_over = true;
  look_again_in(kTurnBeforeUrgentNs);
}

Sysmon::Need Sysmon::what_waits_for(P* p) const {
  // No other M finds the goroutines that the holder has set aside for itself, whether Ps are idle
  // or not.
  bool out_of_sight = p->has_out_of_sight();
  Search::View view = runtime->search.view();
  bool others_come = view.searching != 0 || (view.idle != 0 && !no_thread_comes());
  if (!out_of_sight && others_come) return Need::none;
  if (p->timers.earliest_ns() <= now_ns_ || runtime->global.urgent() != 0) return Need::urgent;
  if (is_woken(p->queue.next.peek()) || is_woken(p->inbox.glance())) return Need::woken;
  // Also behind some goroutines that have not begun: each of them may run long.
  for (std::uint64_t others = 0; others < kLooksIntoRing; ++others) {
    G* g = p->queue.glance(others);
    if (g == nullptr) break;
    if (is_woken(g)) return Need::woken;
  }
  return out_of_sight || work_is_visible() ? Need::others : Need::none;
}

void Sysmon::retry_later(P* p, std::int64_t longest_gap_ns) {
  std::int64_t& gap = p->seen.turn.retry_gap_ns;
  gap = gap == 0 ? kRetryGapNs : std::min(2 * gap, longest_gap_ns);
  look_again_in(gap);
}

}  // namespace magpie::sched
