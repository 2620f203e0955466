// network.h: the poller in the scheduler: which thread asks it for events, and when.
//
//   an M that finds nothing in its own     asks before it steals, and does not block
//   queue and in the global queue
//   every P, each time it looks at what    asks if no thread asked lately, does not block, takes
//   is not its own                         as many as its inbox has room for
//   an M that goes to sleep, if no other   blocks until there are events, or until its timer duty
//   M sleeps in the poller                 ends ([timer-duty]); it stands at the end of the list of
//                                          sleeping Ms, so that others are woken first
//   sysmon, when no thread has asked       asks if all Ps are held, or if no thread is to be had
//   for a while                            for the idle ones; does not block
//
// One thread asks at a time: see [poll-role], which also says why some thread always does.
// Goroutines that became ready are run in the order of their events.
#pragma once

#include <cstdint>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "poll/poller.h"
#include "poll/slot.h"
#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/rest/poll_role.h"

namespace magpie::sched {

class Network {
 public:
  // ---- for the owner of a descriptor; inside the runtime

  struct Attached {
    poll::Slot* slot;  // null: see error
    int error;         // an error number
  };
  Attached attach(int fd);
  void detach(int fd, poll::Slot* slot);

  // A plain thread waits: some thread has to ask.
  void want_events();

  // ---- for the scheduler

  // Whether there are descriptors at all. A thread that attached one sees it, others do in time.
  bool in_use() const { return attached_.load(base::acquire) != 0; }

  // The first goroutine that became ready; the others are at the end of m's queue. Null: none.
  G* poll(M* m);
  // If no thread has asked lately: puts a few into m's inbox, or into its ring while other Ms could
  // run them.
  void poll_if_overdue(M* m);

  // By an M on the list of sleeping Ms, in place of sleeping.
  enum class Slept {
    // There are no descriptors, another M sleeps in the poller, or m was handed a P before.
    not_there,
    // Goroutines became ready, and m has taken a P for them: they are in its ring.
    with_p,
    // m is on the list still, or was handed a P; what became ready is in the global queue.
    without_p
  };
  [[nodiscard]] Slept sleep_in_poller(M* m, std::int64_t until_ns);

  // The M that sleeps in the poller looks at its wake_up.
  void interrupt() { poller_.interrupt(); }

  // By sysmon. Returns when to look again, kNever: no need to.
  std::int64_t look_after(std::int64_t now_ns);

  // A goroutine, or a thread, waits for a descriptor, or is on its way from there to a queue.
  bool is_waited_for() const;

  // The runtime ends, no M is left: plain threads that wait go on, and find that.
  void release_threads();

 private:
  using Role = PollRole::Role;

  struct Batch;

  void ask(Batch& batch, std::int64_t until_ns, std::size_t most_events);
  [[nodiscard]] bool try_ask(Batch& batch, M* m, std::size_t most_events);
  void deliver(poll::Slot& slot, std::uint32_t events, Batch& batch);
  static void put_in_global(Batch& batch);

  base::Lock lock_;  // guards the opening of the poller
  bool open_ MAGPIE_GUARDED_BY(lock_) = false;
  poll::Poller poller_;
  poll::SlotTable slots_;
  // atomic [poll-role]: whether there is anything to ask for. Added to by release, with in_use():
  // the poller is open
  base::Atomic<int> attached_{0};
  PollRole role_;  // [poll-role]
  // atomic, a count: batches on their way. The asking thread adds before it takes a record out of
  // its slot, which releases; it subtracts, by release, when all are in queues or their M has a P.
  // is_waited_for() looks at the slots first, and acquires both.
  base::Atomic<int> delivering_{0};
  base::Atomic<std::int64_t> asked_ns_{0};  // atomic, a hint: when a thread asked last
};

}  // namespace magpie::sched
