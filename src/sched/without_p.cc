#include "sched/without_p.h"

#include <algorithm>
#include <utility>

#include "base/other_thread.h"
#include "sched/bound.h"
#include "sched/free_cpu.h"
#include "sched/preempt.h"
#include "sched/runtime.h"

namespace magpie::sched {
namespace {

// How soon, and how seldom, to look again at one that runs without a P.
constexpr std::int64_t kFirstAwayGapNs = 1'000'000;
constexpr std::int64_t kLongestAwayGapNs = 5'000'000;
constexpr std::int64_t kCpuUnknown = -1;

}  // namespace

void WithoutP::note(M* m, std::int64_t now_ns) {
  m->away.cpu_ns = base::cpu_ns_of(m->tid.load(base::relaxed));
  m->away.looked_ns = m->away.taken_ns = now_ns;
  m->away.gap_ns = kFirstAwayGapNs;
  if (std::exchange(m->away.listed, true)) return;
  m->away.next = std::exchange(first_, m);
}

void WithoutP::note_announced(std::int64_t now_ns) {
  announced_.hear([&](M* m) { note(m, now_ns); });
}

std::int64_t WithoutP::look(Runtime& rt, std::int64_t now_ns) {
  note_announced(now_ns);
  std::int64_t next_look_ns = timer::kNever;
  for (M** link = &first_; *link != nullptr;) {
    M* m = *link;
    M::Away& away = m->away;
    bool is_back = !m->grip.is_taken();
    // It may have come back before it was told of its successor.
    if (is_back || now_ns - away.taken_ns >= Preemption::kStopsWithinNs)
      wake_successor(rt, m, kAnyCpu);
    if (is_back) {
      away.listed = false;
      *link = away.next;
      continue;
    }
    // In a blocking call: a look costs nothing, and all that are looked at together wake sysmon together next time.
    if (m->is_in_blocking_call() || now_ns - away.looked_ns >= away.gap_ns) look_at(rt, m, now_ns);
    next_look_ns = std::min(next_look_ns, away.looked_ns + away.gap_ns);
    link = &away.next;
  }
  return next_look_ns;
}

void WithoutP::look_at(Runtime& rt, M* m, std::int64_t now_ns) {
  M::Away& away = m->away;
  if (m->is_in_blocking_call()) {
    away.looked_ns = now_ns;
    away.gap_ns = kLongestAwayGapNs;
    away.cpu_ns = kCpuUnknown;
    return;
  }
  std::int64_t used = base::cpu_ns_of(m->tid.load(base::relaxed));
  std::int64_t passed = now_ns - std::exchange(away.looked_ns, now_ns);
  std::int64_t before = std::exchange(away.cpu_ns, used);
  if (before == kCpuUnknown) {
    away.gap_ns = kFirstAwayGapNs;
    return;
  }
  bool used_much = used - before > passed / 8;  // it may share its CPU with many
  if (used_much && !m->grip.is_inside() && rt.options.preempt) {
    away.gap_ns = kFirstAwayGapNs;
    rt.preemption.stop(m);
  } else {
    away.gap_ns = std::min(2 * away.gap_ns, kLongestAwayGapNs);
  }
}

}  // namespace magpie::sched
