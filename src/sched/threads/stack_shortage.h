// stack_shortage.h: a fresh goroutine cannot start because the system gives no memory for a stack.
//
// Nothing is lost. The goroutine goes back to the global queue and is tried again, for goroutines
// that end give their stacks back. The runtime warns once on stderr. A thread that finds only such
// goroutines pauses between its tries. The runtime ends the program, with advice, if for a while
// all goroutines that were found lacked a stack, none runs or could run, and nothing is there that
// may wake one: a timer, the network, a plain thread. But only with DeadlockPolicy::exit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "base/lock.h"

namespace magpie::sched {

struct G;

class StackShortage {
 public:
  enum class Advice { try_the_next, pause };

  // An M took a goroutine from a queue, and there was no stack of this size for it.
  Advice note(std::size_t stack_size);

 private:
  static constexpr std::uint32_t kTriesPerRound = 16;
  static constexpr std::int64_t kNewAfterNs = 200'000'000;  // no failure for this long: it is over
  static constexpr std::int64_t kPatienceNs = 2'000'000'000;

  base::Lock lock_;
  bool said_ MAGPIE_GUARDED_BY(lock_) = false;
  // When this shortage began, or something ran last.
  std::int64_t since_ns_ MAGPIE_GUARDED_BY(lock_) = 0;
  std::int64_t last_ns_ MAGPIE_GUARDED_BY(lock_) = 0;  // the last failure
  std::uint64_t failures_ MAGPIE_GUARDED_BY(lock_) = 0;
  // Turns of goroutines that could run, at the last failure.
  std::uint64_t turns_of_others_ MAGPIE_GUARDED_BY(lock_) = 0;
  std::uint32_t tries_ MAGPIE_GUARDED_BY(lock_) = 0;  // failures in a row
};

// Puts g back, and pauses if there is nothing else to do.
void put_off(G* g);

}  // namespace magpie::sched
