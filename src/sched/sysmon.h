// sysmon.h: a thread without a P that looks after the others.
//
// Every so often, from 20 microseconds while something happens to 10 milliseconds, it looks at each P that is held:
//   in blocking() since the last look, and others wait      the P is taken ([grip]) and handed to a sleeping thread
//   the same goroutine, its thread asleep in the kernel     the same: a library blocks without saying so
//   the same goroutine, its thread uses the CPU             the same once its slice is over; much earlier when a timer is
//                                                           due or a goroutine was woken and no P is free for it
// An M whose P was taken runs on without one until it enters the runtime. Most are about to, or sleep. One
// that uses the CPU instead is stopped by a signal (preempt.h) and waits for its turn.
// Nothing waits: nothing is taken. All Ps idle and nothing has run for a while: sysmon sleeps until somebody begins with
// a P.
//
// Sysmon never allocates and never takes a lock that is held while somebody allocates: a preempted thread may hold
// the allocator's lock, and sysmon is who lets it go on.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "base/atomic.h"
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
    // [sysmon] seq_cst: with fall_asleep(), which looks at the Ps after it said that it sleeps
    if (asleep_.load(base::seq_cst)) [[unlikely]]
      wake();
  }

  // Somebody waits for the world to stop.
  void hurry() { event_.set(); }

  int helpers() const { return running_ ? 1 : 0; }

 private:
  enum class Need { none, others, urgent };
  enum class Because { blocked, ran_long };

  void watch(Runtime& rt);
  void sleep_until_next_look(Runtime& rt, bool something_happened);
  bool fall_asleep(Runtime& rt);
  void wake();

  bool look_at(Runtime& rt, P* p);
  bool look_at_blocking_call(Runtime& rt, P* p, M* m);
  bool look_at_long_runner(Runtime& rt, P* p, M* m);
  Need what_waits_for(Runtime& rt, P* p) const;
  bool take(Runtime& rt, P* p, M* m, Because because, Need need);
  void take_for_stopped_world(Runtime& rt, P* p, M* m);
  bool is_asleep_in_kernel(M* m) const;

  void note_away(M* m, Because because);
  bool look_at_those_away(Runtime& rt);
  void look_at_away(Runtime& rt, M* m);

  // sysmon only
  std::int64_t now_ns_ = 0;
  std::int64_t gap_ns_ = 0;
  int quiet_looks_ = 0;
  std::uint64_t turns_seen_ = 0;
  M* away_ = nullptr;  // those whose P was taken and who may not have one yet

  bool running_ = false;  // fixed while goroutines run
  pthread_t thread_{};
  base::Atomic<bool> stop_{false};    // atomic: relaxed, the event orders
  base::Atomic<bool> asleep_{false};  // atomic [sysmon]
  base::Event event_;
};

}  // namespace magpie::sched
