// sysmon_taking.cc: sysmon takes a P from an M that blocks or has computed for long. Which thread
// gets it, whether the M's thread is stopped, and what happens if no thread can have it.
#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/other_thread.h"
#include "base/probe.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/free_cpu.h"
#include "sched/taking/hand_off.h"
#include "sched/taking/preempt.h"
#include "sched/taking/sysmon.h"
#include "sched/timers.h"

namespace magpie::sched {
namespace {

constexpr std::size_t kMostSparesForLoops = 4;  // each lasts for a time slice
// If others wait, stopped goroutines get one in this many parts of a P's time.
constexpr std::int64_t kPartsPerStopped = 4;

}  // namespace

// The lock of user code for which m sleeps, if a stopped goroutine may hold it; 0: none.
std::uintptr_t Sysmon::lock_of_stopped(const M* m, Because because) {
  bool may_be =
      because == Because::blocked && !m->is_in_blocking_call() && runtime->global.stopped() != 0;
  return may_be ? base::lock_waited_for(m->os.tid.load(base::relaxed)) : 0;
}

// Beyond the limit on preempted threads, preempted goroutines take turns with each other. Urgent
// work comes first.
Heir Sysmon::choose_heir(P* p, Because because, Need need) {
  bool for_others = because == Because::ran_long && need == Need::others;
  bool too_many = runtime->preempted.load(base::relaxed) + runtime->without_p.computing() >=
                  runtime->options.max_preempted;
  // If only stopped goroutines wait, the P goes straight to the next of them, without a thread in
  // between that finds it.
  bool only_stopped_wait = p->queue.looks_empty() && !p->has_out_of_sight() &&
                           runtime->global.size() == runtime->global.stopped();
  if (for_others && (too_many || only_stopped_wait)) {
    Heir heir = choose_stopped();
    bool some_are_stopped =
        runtime->preempted.load(base::relaxed) + runtime->without_p.computing() > 0;
    if (!heir.is_nobody() || (too_many && some_are_stopped)) return heir;
  }
  Heir heir = choose_sleeping_thread(p);
  if (!heir.is_nobody()) return heir;
  std::size_t waiting = p->queue.size() + runtime->global.size();
  runtime->threads.start_spares(
      waiting, because == Because::blocked ? Threads::kMostSpares : kMostSparesForLoops);
  // A preempted goroutine brings a thread with it. It may hold the very lock, malloc's perhaps,
  // that the maker of threads and all holders of Ps wait for. The same is true of any other bound
  // goroutine.
  heir = choose_stopped();
  return heir.is_nobody() ? choose_bound() : heir;
}

// The thread has used up its slice. True: it surely still computes, so sysmon stops it as it takes
// its P. A thread that was stopped before and has computed ever since need not prove it.
bool Sysmon::computes_on(P* p, M* m) {
  if (valve_.is_open()) return false;
  pid_t thread = m->os.tid.load(base::relaxed);
  bool went_on_after_stop = m->stopped_before_turn == p->turns();
  std::int64_t length = p->seen.turn.stretch.measure_ns(thread, base::cpu_ns_of(thread));
  return (went_on_after_stop || length >= kLongStretchNs) && seems_to_compute(thread, length);
}

// No thread can take the P over. If goroutines or timers wait in it, or in the global queue, sysmon
// takes it all the same. The goroutines go to the global queue, where running Ms find them. A bound
// goroutine gets the P. Timers are fired from an idle P (stand_in.h). At its next call into the
// runtime the goroutine that lost the P lets the others run (entry.cc).
bool Sysmon::is_to_be_given_up(P* p) const {
  bool some_wait = !p->queue.looks_empty() || p->has_out_of_sight() || !runtime->global.empty();
  return no_thread_comes() && (some_wait || p->timers.earliest_ns() <= now_ns_);
}

// Threads that run on without a P compete with the others for the CPUs. So not too many may do so
// at a time.
bool Sysmon::too_many_run_on() const {
  return runtime->without_p.computing() >= static_cast<int>(runtime->ps.count());
}

trace::Why Sysmon::why_of(const M* m, Because because) {
  if (because != Because::blocked) return trace::Why::used_its_slice;
  return m->is_in_blocking_call() ? trace::Why::blocking : trace::Why::blocks_undeclared;
}

// The P was taken from m: tells sysmon, the P and the counters.
void Sysmon::note_taken(P* p, M* m, Because because, Need need) {
  bool blocked = because == Because::blocked;
  something_happened_ = true;
  look_again_in(blocked ? kBlockingCallGapNs : kUsualGapNs);  // the next holder may block at once
  runtime->without_p.add();
  runtime->without_p.note(m, now_ns_, blocked ? WithoutP::Computes::no : WithoutP::Computes::yes,
                          p->seen.turn.stretch);
  p->counters.handoffs.increment();
  if (!blocked) {
    p->counters.preemptions.increment();
    // For people: the M runs user code, most likely still in the same goroutine.
    [[maybe_unused]] const G* g = m->current;
    MAGPIE_PROBE(preempt, g->id, p->index, reinterpret_cast<const pid_t&>(m->os.tid));
    std::int64_t used = base::cpu_ns_of(m->os.tid.load(base::relaxed)) - p->seen.turn.cpu_ns;
    // At most a slice: nobody waited for the P before that.
    std::int64_t slice_ns = std::chrono::nanoseconds(runtime->options.time_slice).count();
    p->stopped_pause_ns = (kPartsPerStopped - 1) * std::min(used, slice_ns);
  }
  if (m->is_in_blocking_call()) runtime->long_calls.note_taken();
  if (need == Need::urgent) p->ticks_to_look = 0;  // the next holder looks there first
  p->seen = P::Seen{};
}

// Chooses the heir, takes the P, and hands it over; or puts the heir back.
void Sysmon::take(P* p, M* m, Because because, Need need) {
  if (m->grip.is_inside()) return retry_later(p, kUsualGapNs);
  bool is_stopped = because == Because::ran_long && computes_on(p, m);
  bool runs_on = because != Because::blocked && !is_stopped;
  if (runs_on && too_many_run_on()) return retry_later(p, kUsualGapNs);
  // From the second one on that waits for a lock, stopped goroutines go first. Or all that want it
  // would block a thread each, one after the other, while the one that has it waits for its turn.
  std::uintptr_t lock = lock_of_stopped(m, because);
  bool others_wait_too = lock != 0 && runtime->without_p.somebody_waits_for(lock);
  Heir heir = others_wait_too ? choose_stopped() : Heir{};
  if (heir.is_nobody()) heir = choose_heir(p, because, need);
  if (heir.is_nobody() && !is_to_be_given_up(p)) return retry_later(p, kLongestGapNs);
  if (!take_from(m, p, why_of(m, because))) {
    put_back(heir);
    return retry_later(p, kUsualGapNs);
  }
  wake_successor(m, kAnyCpu);  // the successor for an earlier P: there is room for one
  note_taken(p, m, because, need);
  m->without_p.waits_for = lock;
  if (heir.is_nobody()) return let_go(p);
  p->end_hold(now_ns_);
  if (traced()) trace_handed_over(p);
  M* next = hand_over(p, heir);
  if (next == nullptr) return;  // the runtime ends
  // Taking the P took a while. If the thread has begun to sleep meanwhile, a signal would interrupt
  // the call in which it does. It runs on without a P instead.
  if (!is_stopped || base::is_asleep_lightly(m->os.tid.load(base::relaxed)))
    return sched::wake(next);
  m->successor.set(next);  // m's thread wakes it as it stops
  runtime->preemption.stop(m);
  look_again_in(Preemption::kStopsWithinNs);
}

void Sysmon::take_for_stopped_world(P* p, M* m) {
  if (!take_from(m, p, trace::Why::world_stops)) return;
  runtime->without_p.add();
  runtime->without_p.note(m, now_ns_, WithoutP::Computes::no);
  p->seen = P::Seen{};
  let_go(p);  // the world may have started again already
}

}  // namespace magpie::sched
