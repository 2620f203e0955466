// spin.h: decides whether to wait for a lock without giving up the CPU.
#pragma once

#include <thread>

#include "base/cpu.h"
#include "sched/current.h"
#include "sched/park.h"

namespace magpie::sync {

// Only if the lock's holder may be running now, and no other goroutine could use this P.
inline bool is_worth_spinning() {
  sched::M* m = sched::current_m();
  if (m != nullptr) return sched::is_worth_spinning(m);
  static const bool several_cpus = std::thread::hardware_concurrency() > 1;
  return several_cpus;
}

// About a microsecond: long enough for the holder to do something useful before we take its cache
// line away again.
inline void spin_a_while() {
  constexpr int kPauses = 30;
  for (int i = 0; i < kPauses; ++i) base::cpu_relax();
}

inline constexpr int kSpins = 4;

}  // namespace magpie::sync
