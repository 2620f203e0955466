// load.h: what the demo runs: work that is born on one P.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include <magpie/stats.h>

namespace demo {

inline constexpr std::array<const char*, 5> kPhases = {
    "CPU-bound goroutines of all lengths, born on one P, spread by stealing",
    "thousands at once: full rings spill half to the global queue",
    "set_procs() live, from 1 to all: computing goroutines follow the Ps",
    "a million goroutines started by one, on one P; then the other Ps return",
    "nothing to do: Ps are idle, threads sleep, nobody spins",
};

// How far the load is; the view reads it.
struct Progress {
  std::atomic<int> phase{-1};       // index in kPhases; -1: not begun
  std::atomic<bool> cancel{false};  // nobody watches any more: finish soon
};

// What the load measured.
struct Outcome {
  magpie::Stats stats;  // at the end
  int most_threads = 0;

  // phases 1 and 2
  double balance_seconds = 0;
  double balance_work_seconds = 0;   // CPU time of the goroutines themselves
  std::vector<double> busy_seconds;  // by P

  // phase 4
  std::uint64_t million = 0;  // how many there were
  double spawn_seconds = 0;
  double bytes_each = 0;  // growth of the resident set
};

// Runs all phases, inside magpie::run(), in about ten seconds and at most thirteen.
Outcome run_load(Progress& progress);

}  // namespace demo
