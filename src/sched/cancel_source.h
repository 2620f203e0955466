// cancel_source.h: how a context ends waits. The one door for waits with a Context.
//
// A wait with a context is a wait with a deadline whose time is not known. CancelSource::wait()
// takes the same commit and withdraw as Waiter::wait_until(), and calls withdraw when the context
// is over. Protocol [cancel]: cancel_list.h.
//
// Why not a select on done()? Then every side that serves a lock, or a group, would have to win a
// select's word first.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "sched/cancel_list.h"
#include "sched/waiter.h"

namespace magpie::sched {

class CancelSource {
 public:
  CancelSource() = default;
  CancelSource(const CancelSource&) = delete;
  CancelSource& operator=(const CancelSource&) = delete;

  // Call this before others know of the source: a timer of that run() ends it by then. When that
  // run() has ended, nobody cancels the source, so waiters look at the time themselves. Plain
  // threads always do, and so do bound goroutines: all threads may be bound, with none left to
  // cancel it.
  void set_deadline(std::int64_t deadline_ns, std::uint64_t run) {
    deadline_ns_ = deadline_ns;
    timer_run_ = run;
  }
  void inherit_deadline(const CancelSource& parent) {
    set_deadline(parent.deadline_ns_, parent.timer_run_);
  }
  // The source has a deadline that has passed, and that the caller has to look after.
  bool has_expired_unseen() const;
  // The same for any caller: nobody else looks after the deadline. Once true it stays true.
  bool has_expired_unwatched() const;
  // It has a deadline, and the run() whose timer looks after it has ended.
  bool is_unwatched() const;
  std::int64_t deadline_ns() const { return deadline_ns_; }
  // The deadline that the caller has to look after while it waits. kNever: none.
  std::int64_t deadline_to_watch() const;

  // Like Waiter::wait_until, but no longer than until the source is over. True: woken. False: the
  // source was over, or time was up, first. `commit` must not return false. `withdraw` runs on
  // another stack or thread, and perhaps before commit has ended. Then it has to wait for that, by
  // a lock that commit releases or by a word of the waiter's.
  [[nodiscard]] bool wait(Waiter& waiter, std::int64_t deadline_ns, WaitReason reason,
                          bool (*commit)(Waiter& self, void* argument),
                          bool (*withdraw)(Waiter& self, void* argument), void* argument,
                          void (*look_again)(void* argument) = nullptr);

  // Only time and the source end this wait. True: time was up first.
  bool sleep(std::int64_t deadline_ns, WaitReason reason);

  // The source is over: ends all waits that nobody else has ended, and lets none begin. The
  // canceller calls this once.
  void end();
  bool is_over() const { return over_.load(base::acquire); }  // with end()

 private:
  struct Record;

  // fixed after construction
  std::int64_t deadline_ns_ = kNever;
  std::uint64_t timer_run_ = 0;

  base::Atomic<bool> over_{false};  // atomic, published: by the canceller, before it wakes a waiter
  CancelList<> waits_;
};

}  // namespace magpie::sched
