// profile.h: where goroutines wait, and for how long, in the format of pprof.
//
//     magpie::profile::start();
//     ...
//     magpie::profile::stop();
//     magpie::write_file("waits.pb", magpie::profile::pprof());
//
//     $ go tool pprof -top ./program waits.pb
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <string>

#include <magpie/detail/api.h>

namespace magpie::profile {

struct Options {
  // About one wait is recorded for each `period` that goroutines wait in all. Longer waits are
  // always recorded, shorter ones with a chance that is their share of it, and with as much more
  // weight. So the sums are right whatever the period. 1 ns: every wait.
  std::chrono::nanoseconds period = std::chrono::microseconds(10);
};

// Begins to record, and forgets what was recorded before. Until stop() a goroutine that waits reads
// the clock twice; a wait that is recorded costs some microseconds, for its stack. Any thread may
// call it, in a run() or not. Throws std::bad_alloc, std::invalid_argument if the period is not
// positive.
MAGPIE_API void start(const Options& options = {});

// Ends recording. What was recorded stays until the next start().
MAGPIE_API void stop() noexcept;

// locks: only waits for Mutex, RWMutex, Semaphore and Once, which show the locks that are
// contended.
enum class Waits { all, locks };

// What was recorded: each stack with the number of waits ("contentions") and how long they took in
// all ("delay", from the moment a goroutine began to wait until it ran again), and a label
// "reason". Addresses are not symbolised: pprof does that, with the program at hand. Recording may
// go on meanwhile.
MAGPIE_API std::string pprof(Waits which = Waits::all);

}  // namespace magpie::profile
