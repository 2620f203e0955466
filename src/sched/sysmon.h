// sysmon.h: a thread without a P that looks after the others.
//
// It looks at each P that is held, 20 microseconds after a call that may block, every 10 milliseconds when nothing happens:
//   in blocking() since the last look, and others wait      the P is taken ([grip]) and handed to a sleeping thread
//   the same goroutine, its thread asleep in the kernel     the same: a library blocks without saying so
//   the same goroutine, its thread uses the CPU             the same once its slice is over; much earlier when a timer is
//                                                           due or a goroutine was woken and no P is free for it
// An M whose P was taken runs on without one; without_p.h looks after it.
// Nothing waits: nothing is taken. A P is idle and nothing has run for a while: sysmon sleeps until somebody begins with
// a P.
//
// Sysmon never allocates and never takes a lock that is held while somebody allocates: a preempted thread may hold
// the allocator's lock, and sysmon is who lets it go on.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <cstdint>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/event.h"
#include "sched/m.h"

namespace magpie::sched {

struct Runtime;

class Sysmon {
 public:
  // Without a thread for it nothing is taken, and everything else works. Says so on stderr.
  void start(Runtime& rt);
  void stop();

  // After a P was taken from the idle list, or the world is to stop.
  void wake_if_asleep() {
    // seq_cst: after the change of the word that counts idle Ps; with fall_asleep(), which looks at it after a fence
    if (asleep_.load(base::seq_cst)) [[unlikely]]
      wake();
  }

  // Somebody waits for the world to stop.
  void hurry() { event_.set(); }

  // A timer is due, or a goroutine was woken, and all Ps are held: sysmon is to find it one soon.
  void look_soon() {
    // relaxed: at worst it comes at its usual time
    if (next_look_ns_.load(base::relaxed) > base::now_ns() + kSoonNs) event_.set();
  }

  int helpers() const { return running_ ? 1 : 0; }

 private:
  static constexpr std::int64_t kSoonNs = 500'000;
  // What waits for a P: nothing; goroutines that have not begun, or have run long; one that was woken and is in a
  // queue; one that was woken while no P was free, or a timer.
  enum class Need { none, others, woken, urgent };
  enum class Because { blocked, ran_long };

  void watch(Runtime& rt);
  void sleep_until_next_look(Runtime& rt);
  bool fall_asleep(Runtime& rt);
  void wake();

  void look_at(Runtime& rt, P* p);
  void look_at_blocking_call(Runtime& rt, P* p, M* m);
  void look_at_long_runner(Runtime& rt, P* p, M* m);
  void look_again_in(std::int64_t ns) { next_ns_ = std::min(next_ns_, now_ns_ + ns); }
  Need what_waits_for(Runtime& rt, P* p) const;
  void take(Runtime& rt, P* p, M* m, Because because, Need need);
  void take_for_stopped_world(Runtime& rt, P* p, M* m);
  void look_at_those_without_thread(Runtime& rt);
  void be_chaotic(Runtime& rt);  // see chaos.h
  void bother(Runtime& rt, P* p, M* m);

  // sysmon only
  std::int64_t now_ns_ = 0;
  std::int64_t next_ns_ = 0;  // when to look again; the earliest wish of this round
  std::int64_t gap_ns_ = 0;   // at the latest
  bool something_happened_ = false;
  std::int64_t network_look_ns_ = 0;  // when the network wants one; kNever: somebody looks after it
  std::uint64_t turns_seen_ = 0;
  std::int64_t cpu_of_holders_seen_ns_ = 0;

  bool running_ = false;  // fixed while goroutines run
  pthread_t thread_{};
  base::Atomic<bool> stop_{false};    // atomic: relaxed, the event orders
  base::Atomic<bool> asleep_{false};  // atomic: seq_cst, see wake_if_asleep()
  base::Event event_;
  base::Atomic<std::int64_t> next_look_ns_{0};  // atomic: relaxed, a hint
};

}  // namespace magpie::sched
