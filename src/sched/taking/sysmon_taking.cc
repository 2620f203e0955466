// sysmon_taking.cc: sysmon takes a P from an M that blocks or has computed for long: who gets it, is the thread stopped, and
// what if nobody can have it.
#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/other_thread.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"
#include "sched/taking/free_cpu.h"
#include "sched/taking/hand_off.h"
#include "sched/taking/preempt.h"
#include "sched/taking/sysmon.h"
#include "sched/timers.h"

namespace magpie::sched {
namespace {

constexpr std::size_t kMostSparesForLoops = 4;  // each lasts for a time slice
// Of a P: goroutines that were stopped get one in this many parts of its time, if others wait.
constexpr std::int64_t kPartsPerStopped = 4;

}  // namespace

// Beyond the limit on preempted threads, those that were preempted before take turns. What is urgent comes first.
Heir Sysmon::choose_heir(P* p, Because because, Need need) {
  bool for_others = because == Because::ran_long && need == Need::others;
  bool too_many = runtime->preempted.load(base::relaxed) + runtime->without_p.computing() >=
                  runtime->options.max_preempted;
  // If nobody else waits the P goes straight to the next of them, without a thread in between that finds it.
  bool only_stopped_wait = p->queue.looks_empty() && !p->has_out_of_sight() &&
                           runtime->global.size() == runtime->global.stopped();
  if (for_others && (too_many || only_stopped_wait)) {
    Heir heir = choose_stopped();
    bool some_are_stopped =
        runtime->preempted.load(base::relaxed) + runtime->without_p.computing() > 0;
    if (!heir.is_nobody() || (too_many && some_are_stopped)) return heir;
  }
  Heir heir = choose_sleeping_thread();
  if (!heir.is_nobody()) return heir;
  std::size_t waiting = p->queue.size() + runtime->global.size();
  runtime->threads.start_spares(
      waiting, because == Because::blocked ? Threads::kMostSpares : kMostSparesForLoops);
  // A preempted goroutine brings a thread with it. It may hold the very lock, malloc's perhaps, that the maker of threads
  // and all who hold Ps wait for. So does any other that is bound.
  heir = choose_stopped();
  return heir.is_nobody() ? choose_bound() : heir;
}

// Whether the thread, which has used up its slice, computes on for sure, so that it is stopped as its P is taken. One that was
// stopped before and has computed ever since need not prove it.
bool Sysmon::computes_on(P* p, M* m) {
  if (valve_.is_open()) return false;
  pid_t thread = m->os.tid.load(base::relaxed);
  bool went_on_after_stop = m->stopped_before_turn == p->turns();
  return (went_on_after_stop ||
          p->seen.turn.stretch.length_ns(thread, base::cpu_ns_of(thread)) >= kLongStretchNs) &&
         !base::is_asleep_in_kernel(thread);
}

// Nobody is there to take the P over. If goroutines or timers wait in it, it is taken all the same: the goroutines go to the
// global queue, where whoever runs finds them, those that are bound get the P, and timers are fired from an idle P (stand_in.h).
bool Sysmon::is_to_be_given_up(P* p) const {
  bool some_wait = !p->queue.looks_empty() || p->has_out_of_sight();
  return no_thread_comes() && (some_wait || p->timers.earliest_ns() <= now_ns_);
}

// Threads that run on without a P compete with the others for the CPUs: not too many at a time.
bool Sysmon::too_many_run_on() const {
  return runtime->without_p.computing() >= static_cast<int>(runtime->ps.count());
}

// The P was taken from m: what sysmon, the P and the counters have to know.
void Sysmon::note_taken(P* p, M* m, Because because, Need need) {
  bool blocked = because == Because::blocked;
  something_happened_ = true;
  look_again_in(blocked ? kBlockingCallGapNs : kUsualGapNs);  // the next holder may block at once
  runtime->without_p.add();
  runtime->without_p.note(m, now_ns_, blocked ? WithoutP::Computes::no : WithoutP::Computes::yes,
                          p->seen.turn.stretch);
  p->counters.handoffs.increment();
  if (!blocked) p->counters.preemptions.increment();
  if (because == Because::ran_long) {
    std::int64_t used = base::cpu_ns_of(m->os.tid.load(base::relaxed)) - p->seen.turn.cpu_ns;
    // At most a slice: before that nobody waited for it.
    std::int64_t slice_ns = std::chrono::nanoseconds(runtime->options.time_slice).count();
    p->stopped_again_ns = now_ns_ + (kPartsPerStopped - 1) * std::min(used, slice_ns);
  }
  if (m->is_in_blocking_call()) runtime->long_calls.note_taken();
  if (need == Need::urgent) p->ticks_to_look = 0;  // the next holder looks there first
  p->seen = P::Seen{};
}

// Choose the heir, take the P, and hand it over; or put the heir back.
void Sysmon::take(P* p, M* m, Because because, Need need) {
  if (m->grip.is_inside()) return retry_later(p, kUsualGapNs);
  bool is_stopped = because == Because::ran_long && computes_on(p, m);
  bool runs_on = because != Because::blocked && !is_stopped;
  if (runs_on && too_many_run_on()) return retry_later(p, kUsualGapNs);
  Heir heir = choose_heir(p, because, need);
  if (heir.is_nobody() && !is_to_be_given_up(p)) return retry_later(p, kLongestGapNs);
  if (!take_from(m, p)) {
    put_back(heir);
    return retry_later(p, kUsualGapNs);
  }
  wake_successor(m, kAnyCpu);  // of an earlier P: there is room for one
  note_taken(p, m, because, need);
  if (heir.is_nobody()) return let_go(p);
  p->end_hold(now_ns_);
  M* next = hand_over(p, heir);
  if (next == nullptr) return;  // the runtime ends
  if (!is_stopped) return sched::wake(next);
  m->successor.set(next);  // m's thread wakes it as it stops
  runtime->preemption.stop(m);
  look_again_in(Preemption::kStopsWithinNs);
}

void Sysmon::take_for_stopped_world(P* p, M* m) {
  if (!take_from(m, p)) return;
  runtime->without_p.add();
  runtime->without_p.note(m, now_ns_, WithoutP::Computes::no);
  p->seen = P::Seen{};
  let_go(p);  // the world may go on again already
}

}  // namespace magpie::sched
