// sysmon.h: a thread without a P that looks after the others.
//
// Sysmon looks at each P that is held: 20 microseconds after a call that may block, every 10
// milliseconds when nothing happens. It takes a P ([grip]) only if goroutines or timers wait for
// one, or the world stops. It hands the P to a sleeping thread, or to the thread of a bound
// goroutine. What it sees, and what it does:
//   in blocking() since the last look                  takes the P
//   the same goroutine, its thread asleep in the       takes the P: a library blocks without
//     kernel                                           saying so. The second one that waits for
//                                                      a lock gives it to a stopped goroutine
//   the same goroutine, its thread has used up its     takes the P; the slice is much shorter when
//     slice                                            a timer is due, or a goroutine was woken
//                                                      and no P is free for it
//   the same goroutine, its thread waits for a CPU     takes the P, but late: the goroutine has
//                                                      done nothing wrong
//   goroutines that wake each other, one after the     asks the holder to let others have a turn
//     other
// An M whose P was taken runs on without one. without_p.h looks after it, and stops it if it still
// computes.
//
// Sysmon sleeps without end while nobody needs it: sysmon_sleep.h.
//
// Sysmon never allocates, and never takes a lock whose holder may allocate. A preempted thread may
// hold the allocator's lock, and sysmon is the one thread that lets it continue. If another thread
// inside the runtime waits for such a lock: valve.h.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/event.h"
#include "sched/core/m.h"
#include "sched/taking/stand_in.h"
#include "sched/taking/sysmon_sleep.h"
#include "sched/taking/taking.h"
#include "sched/taking/valve.h"

namespace magpie::sched {

class Sysmon {
 public:
  // Makes the thread, which waits for the first hurry(). Returns an error number if the system
  // refuses it. Then nothing may run: without sysmon a goroutine that loops, or blocks its thread,
  // keeps its P for ever, and run() would not even end beside it.
  [[nodiscard]] int start();
  void stop();

  // [sysmon-sleep] the taker's part.
  void wake_if_asleep() {
    if (sleep_.is_asleep()) [[unlikely]]
      hurry();
  }

  // The runtime begins, a thread waits for the world to stop, or the runtime ends.
  void hurry() { event_.set(); }

  // A timer is due, or a goroutine was woken, and all Ps are held. Sysmon shall find it a P soon.
  void look_soon() {
    // relaxed: at worst sysmon looks at its usual time
    if (next_look_ns_.load(base::relaxed) > base::now_ns() + kSoonNs) event_.set();
  }

  static int helpers() { return 1; }
  const Valve& valve() const { return valve_; }

 private:
  static constexpr std::int64_t kSoonNs = 500'000;
  // The time between two looks. It is kUsualGapNs while something happens, and doubles with each
  // look at which nothing did, up to kLongestGapNs.
  static constexpr std::int64_t kUsualGapNs = 1'000'000;
  static constexpr std::int64_t kLongestGapNs = 10'000'000;
  static constexpr std::int64_t kBlockingCallGapNs = 20'000;  // others wait for its P
  // What waits for a P. others: goroutines that have not begun, or have run long. woken: a
  // goroutine that was woken and is in a queue. urgent: a goroutine that was woken while no P was
  // free, or a timer.
  enum class Need { none, others, woken, urgent };
  // The holder's thread sleeps; or has used up its slice; or waits for a CPU.
  enum class Because { blocked, ran_long, was_descheduled };
  static trace::Why why_of(const M* m, Because because);

  void run();
  void look_around();
  void sleep_until_next_look();
  bool fall_asleep();
  void wait_for_the_end();

  // Ms that hold Ps: sysmon_holders.cc.
  void look_at(P* p);
  void look_at_blocking_call(P* p, M* m);
  void look_at_long_runner(P* p, M* m);
  void ask_to_give_way(P* p, M* m);
  static void withdraw_request(P* p);
  void ask_for_turns_of_others(P* p);
  void end_turn_of_joiner(P* p);
  void report_if_slow(P* p, M* m);
  static bool is_blocked(pid_t thread, std::int64_t turn_ns);
  Need what_waits_for(P* p) const;
  // The M was inside, or no thread could take the P. Sysmon tries again soon, and waits twice as
  // long each time.
  void retry_later(P* p, std::int64_t longest_gap_ns);

  // Ps that no M holds.
  void look_at_idle_ps();
  void look_at_those_without_thread();
  void look_again_in(std::int64_t ns) { next_ns_ = std::min(next_ns_, now_ns_ + ns); }

  // Taking Ps: sysmon_taking.cc.
  static std::uintptr_t lock_of_stopped(const M* m, Because because);
  Heir choose_heir(P* p, Because because, Need need);
  bool computes_on(P* p, M* m);
  bool is_to_be_given_up(P* p) const;
  bool too_many_run_on() const;
  void note_taken(P* p, M* m, Because because, Need need);
  void take(P* p, M* m, Because because, Need need);
  void take_for_stopped_world(P* p, M* m);
  void be_chaotic();  // see chaos.h
  void bother(P* p, M* m);

  // sysmon only
  std::int64_t now_ns_ = 0;
  std::int64_t next_ns_ = 0;  // when to look again: the earliest time that this round asks for
  std::int64_t gap_ns_ = 0;   // the longest wait until the next look
  bool something_happened_ = false;
  std::int64_t network_look_ns_ = 0;  // when the network wants a look; kNever: an M looks after it
  std::uint64_t turns_seen_ = 0;
  std::int64_t cpu_of_holders_seen_ns_ = 0;
  Valve valve_;
  StandIn stand_in_;

  pthread_t thread_{};
  base::Atomic<bool> stop_{false};  // atomic, a hint: the event orders
  SysmonSleep sleep_;               // [sysmon-sleep]
  base::Event event_;
  base::Atomic<std::int64_t> next_look_ns_{0};  // atomic, a hint: a time
};

}  // namespace magpie::sched
