// spin.h: decides whether to wait for a lock without giving up the CPU.
#pragma once

#include <thread>

#include "base/cpu.h"
#include "sched/core/m.h"
#include "sched/current.h"
#include "sched/run/runtime.h"

namespace magpie::sync {

// Only if the holder of the lock may be running now, on another P, and no other goroutine could use
// this one.
inline bool is_worth_spinning() {
  sched::M* m = sched::current_m();
  if (m == nullptr) {
    static const bool several_cpus = std::thread::hardware_concurrency() > 1;
    return several_cpus;
  }
  sched::Runtime& rt = *sched::runtime;
  sched::Search::View view = rt.search.view();
  return rt.ps.count() > view.idle + view.searching + 1 && m->p->queue.is_empty();
}

// About a microsecond: long enough for the holder to do something useful before we take its cache
// line away again.
inline void spin_a_while() {
  constexpr int kPauses = 30;
  for (int i = 0; i < kPauses; ++i) base::cpu_relax();
}

inline constexpr int kSpins = 4;

}  // namespace magpie::sync
