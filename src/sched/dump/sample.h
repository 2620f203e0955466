// sample.h: the stack of a thread that runs, taken by the thread itself in a signal handler.
//
// The word, and who moves it:
//
//     IDLE --ask--> ASKED --answer begins--> ANSWERING --answer ends--> ANSWERED --close--> IDLE
//       ^_____________/ no answer in time
//
//   asker:   the thread that dumps; one at a time (Snapshot's lock). ask(), sends the signal, waits
//   thread:  the M, in the handler: answers if it is asked
// Late      A thread that is stopped for long may answer after the asker gave up: it finds IDLE and
//           does nothing. Or it is in ANSWERING when the asker gives up: the asker leaves it so,
//           and does not ask that thread again before it has answered.
// Orders    the answer's end releases the frames, is_answered() acquires them.
// Once      Each arrow is one compare-exchange, or a store by the side that moves it next.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

inline constexpr std::size_t kMostFrames = 64;

struct Frames {
  std::size_t count = 0;
  std::uintptr_t pcs[kMostFrames];
};

class Sample {
 public:
  // By the asker. False: the thread is still busy with an earlier question.
  [[nodiscard]] bool ask() {
    std::uint32_t now = word_.load(base::relaxed);
    return (now == kIdle || now == kAnswered) && move(now, kAsked);
  }
  // Until then an answer may come.
  bool is_pending() const {
    std::uint32_t now = word_.load(base::relaxed);
    return now == kAsked || now == kAnswering;
  }
  bool is_answered() const { return word_.load(base::acquire) == kAnswered; }
  // By the asker after is_answered().
  const Frames& frames() const { return frames_; }
  // By the asker at last: takes the answer, which must not pass for one to a later question, or
  // gives up.
  void close() {
    if (!move(kAsked, kIdle)) (void)move(kAnswered, kIdle);
  }

  // By the thread, in the handler. True: it was asked. `goroutine` runs on it; 0: none.
  bool answer(const ucontext_t& interrupted, std::uint64_t goroutine);
  std::uint64_t goroutine() const { return goroutine_; }  // by the asker after is_answered()

 private:
  static constexpr std::uint32_t kIdle = 0, kAsked = 1, kAnswering = 2, kAnswered = 3;

  bool move(std::uint32_t from, std::uint32_t to) {
    return word_.compare_exchange_strong(from, to, base::acq_rel, base::relaxed);
  }

  base::Atomic<std::uint32_t> word_{kIdle};  // atomic, unproven: as above
  // guarded by the protocol
  Frames frames_;
  std::uint64_t goroutine_ = 0;
};

// The calling thread's stack, without the frames up to the one that continues at `from_pc`; 0: from
// the caller's on.
void take_frames(Frames& frames, std::uintptr_t from_pc);

}  // namespace magpie::sched
