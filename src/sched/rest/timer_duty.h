// timer_duty.h: one M wakes up for the next timer, although every M that could fire it may be
// asleep or busy.
//
// Protocol  [timer-duty]
//
//   While a P is idle, one sleeping M has the timer duty: it sleeps until the earliest timer of all
//   Ps. All other Ms sleep without end. The word is the time at which the keeper of the duty wakes
//   up. kNobody: no M has the duty.
//
//   armer:    inserts the timer;  light_fence();  reads the word: no later than the timer? -> done
//             else acts as a publisher of work:
//             a P is idle and no M searches? -> starts a searcher                   (see_to_timer)
//   sleeper:  idle + 1;  heavy_fence();  looks at every queue and at every P's earliest timer
//             earlier than the word?  -> puts its time in the word, sleeps until then       (take)
//   keeper:   wakes, by time or by hand; takes its time out of the word; looks for work      (end)
//
// No late   Armer and sleeper each write, then read what the other wrote, with a full fence
//           between. So either the sleeper sees the timer, or the armer sees the idle P and starts
//           a searcher. The searcher finds nothing and is the next sleeper. If the armer left the
//           timer to a keeper or a searcher, that M looks at the timers again before it sleeps,
//           after its time has left the word. A keeper that found work, or was handed it, starts
//           the next searcher while a P is idle, as every searcher does ([search-or-sleep]). So the
//           duty passes on. A keeper that the network woke leaves a timer that is far away to
//           sysmon. Sysmon acts as an armer when the time comes near (sysmon.cc).
// Cheap     A goroutine may park right after arming, as in a sleep. It leaves the armer's part to
//           its M. If the M finds nothing else to run, it is the next sleeper itself, and nobody
//           has to be woken.
// Orders    [timer-duty] the word's changes are seq_cst read-modify-writes; reads after
//           light_fence() are relaxed.
// Proof     tests/model/timer_duty_model.cc
#pragma once

#include <cstdint>
#include <limits>

#include "base/atomic.h"
#include "base/fence.h"

namespace magpie::sched {

class TimerDuty {
 public:
  // The sleeper calls this after before_second_look(). True: it has the timer duty, until end()
  // with the same time.
  [[nodiscard]] bool take(std::int64_t until_ns) {
    std::int64_t now = until_ns_.load(base::seq_cst);
    do {
      if (now <= until_ns) return false;
    } while (!until_ns_.compare_exchange_weak(now, until_ns, base::seq_cst, base::seq_cst));
    return true;
  }

  // The keeper calls this first after its sleep. Another M may have an earlier time in the word by
  // now: that time stays.
  void end(std::int64_t until_ns) {
    until_ns_.compare_exchange_strong(until_ns, kNobody, base::seq_cst, base::relaxed);
  }

  // The armer calls this after it inserted the timer. False: the armer has to act as a publisher of
  // work.
  [[nodiscard]] bool covers(std::int64_t when_ns) const {
    // [timer-duty] between the insertion and this read; other side: before_second_look()
    base::light_fence();
    return until_ns_.load(base::relaxed) <= when_ns;
  }

 private:
  static constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::max();

  // atomic [timer-duty]: sleepers and keepers write, armers read
  base::Atomic<std::int64_t> until_ns_{kNobody};
};

}  // namespace magpie::sched
