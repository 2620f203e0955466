// timer_duty.h: somebody wakes up for the next timer, although every thread that could fire it may be asleep or busy.
//
// Protocol  [timer-duty]
//
//   While a P is idle, one sleeping M has the timer duty: it sleeps until the earliest timer of all Ps, the others
//   without end. The word is the time it will wake up at; never: nobody keeps it.
//
//   armer:    insert the timer;  light_fence();  read the word: late enough? -> done
//             else act as a publisher of work: if a P is idle and nobody searches, start a searcher   (see_to_timer)
//   sleeper:  idle + 1;  heavy_fence();  look at every queue and every Ps earliest timer
//             a timer, earlier than the word?  -> put its time in the word, sleep until then          (take)
//   keeper:   woken, by time or by hand: takes its time out of the word, then looks for work          (end)
//
// No late   Armer and sleeper each write, then read what the other wrote, with a full fence between. So either
//           the sleeper sees the timer, or the armer sees the idle P and starts a searcher; that one finds
//           nothing and is the next sleeper. If the armer left it to a keeper or a searcher, that one will look
//           at the timers again before it sleeps, after it left the word.
//           A keeper that found work, or was given it, starts the next searcher while a P is idle, as every
//           searcher does ([search-or-sleep]): so the watch passes on. One whom the network woke leaves a timer that
//           is far away to sysmon, which acts as an armer when its time comes near (sysmon.cc).
// Cheap     Who parks right after arming, a sleeper for instance, leaves the armer's part to its M: if that finds
//           nothing else to run, it is the next sleeper itself and nobody has to be woken.
// Orders    [timer-duty] the word's changes are seq_cst read-modify-writes; reads after light_fence() relaxed.
// Proof     tests/model/timer_duty_model.cc
#pragma once

#include <cstdint>
#include <limits>

#include "base/atomic.h"
#include "base/fence.h"

namespace magpie::sched {

class TimerDuty {
 public:
  // By a sleeper after before_second_look(). True: it has the timer duty, until end() with the same time.
  [[nodiscard]] bool take(std::int64_t until_ns) {
    std::int64_t now = until_ns_.load(base::seq_cst);
    do {
      if (now <= until_ns) return false;
    } while (!until_ns_.compare_exchange_weak(now, until_ns, base::seq_cst, base::seq_cst));
    return true;
  }

  // By the keeper, first thing after its sleep. Another may keep an earlier watch by now: that one stays.
  void end(std::int64_t until_ns) {
    until_ns_.compare_exchange_strong(until_ns, kNobody, base::seq_cst, base::relaxed);
  }

  // By an armer, after it inserted the timer. False: it has to act as a publisher of work.
  [[nodiscard]] bool covers(std::int64_t when_ns) const {
    base::
        light_fence();  // [timer-duty] between the insertion and this read; other side: before_second_look()
    return until_ns_.load(base::relaxed) <= when_ns;
  }

 private:
  static constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::max();

  // atomic [timer-duty]: sleepers and keepers write, armers read
  base::Atomic<std::int64_t> until_ns_{kNobody};
};

}  // namespace magpie::sched
