#include "sched/taking/without_p.h"

#include <algorithm>
#include <utility>

#include "base/other_thread.h"
#include "sched/run/runtime.h"
#include "sched/taking/free_cpu.h"
#include "sched/taking/hand_off.h"
#include "sched/taking/preempt.h"

namespace magpie::sched {
namespace {

// How soon, and how seldom, to look again at an M that runs without a P.
constexpr std::int64_t kFirstGapNs = 1'000'000;
constexpr std::int64_t kLongestGapNs = 5'000'000;

}  // namespace

void WithoutP::set_computes(M* m, bool computes) {
  if (std::exchange(m->without_p.computes, computes) != computes) computing_ += computes ? 1 : -1;
}

void WithoutP::note(M* m, std::int64_t now_ns, Computes computes, Stretch stretch) {
  set_computes(m, computes == Computes::yes);
  m->without_p.stretch = stretch;
  m->without_p.looked_ns = m->without_p.taken_ns = now_ns;
  m->without_p.gap_ns = kFirstGapNs;
  m->without_p.waits_for = 0;
  if (std::exchange(m->without_p.listed, true)) return;
  m->without_p.next = std::exchange(first_, m);
}

bool WithoutP::somebody_waits_for(std::uintptr_t lock) const {
  for (const M* m = first_; m != nullptr; m = m->without_p.next)
    if (m->without_p.waits_for == lock && m->grip.is_taken()) return true;
  return false;
}

void WithoutP::note_announced(std::int64_t now_ns) {
  announced_.hear([&](M* m) { note(m, now_ns, Computes::no); });
}

std::int64_t WithoutP::look(std::int64_t now_ns) {
  note_announced(now_ns);
  std::int64_t next_look_ns = timer::kNever;
  for (M** link = &first_; *link != nullptr;) {
    M* m = *link;
    M::WithoutP& its = m->without_p;
    bool is_back = !m->grip.is_taken();
    // m may have come back before sysmon named its successor.
    if (is_back || now_ns - its.taken_ns >= Preemption::kStopsWithinNs) wake_successor(m, kAnyCpu);
    if (is_back) {
      set_computes(m, false);
      its.listed = false;
      *link = its.next;
      continue;
    }
    // Looking at a blocking call costs nothing. So look at all of them in one pass: then sysmon
    // wakes once for them next time, and not once for each.
    if (m->is_in_blocking_call() || now_ns - its.looked_ns >= its.gap_ns) look_at(m, now_ns);
    next_look_ns = std::min(next_look_ns, its.looked_ns + its.gap_ns);
    link = &its.next;
  }
  return next_look_ns;
}

void WithoutP::look_at(M* m, std::int64_t now_ns) {
  M::WithoutP& its = m->without_p;
  its.looked_ns = now_ns;
  if (m->is_in_blocking_call()) {
    its.gap_ns = kLongestGapNs;
    its.stretch = Stretch{};
    set_computes(m, false);
    return;
  }
  pid_t thread = m->os.tid.load(base::relaxed);
  std::int64_t length = its.stretch.measure_ns(thread, base::cpu_ns_of(thread));
  bool may_be_stopped =
      !m->grip.is_inside() && runtime->options.preempt && !runtime->sysmon.valve().is_open();
  set_computes(m, length > 0);
  if (length < kLongStretchNs) {
    // An M that has begun to compute is looked at again soon.
    its.gap_ns = length > 0 ? kFirstGapNs : std::min(2 * its.gap_ns, kLongestGapNs);
  } else if (may_be_stopped && seems_to_compute(thread, length)) {
    its.gap_ns = kFirstGapNs;
    runtime->preemption.stop(m);
  }
}

}  // namespace magpie::sched
