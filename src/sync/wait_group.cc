#include <stdexcept>

#include <magpie/wait_group.h>

#include "base/check.h"
#include "base/clock.h"
#include "sched/cancel_source.h"
#include "sched/current.h"
#include "sched/presence.h"
#include "sched/run_end.h"
#include "sched/visit.h"
#include "sync/sleeper.h"
#include "sync/storage.h"
#include "sync/wait_group_core.h"

namespace magpie {

using sched::Presence;
using sched::WaitList;
using sync::as_list;
using sync::as_lock;
using sync::Sleeper;
using sync::WaitGroupWord;

namespace {

[[noreturn]] void throw_out_of_range(std::int64_t n) {
  throw std::logic_error(n < 0 ? "magpie: WaitGroup count below zero: more done() than add()"
                               : "magpie: WaitGroup count above 2^31 - 1");
}

}  // namespace

void WaitGroup::add(std::int64_t n) {
  for (;;) {
    switch (WaitGroupWord::add(state_, n)) {
      case WaitGroupWord::Added::done:
        return;
      case WaitGroupWord::Added::out_of_range:
        throw_out_of_range(n);
      case WaitGroupWord::Added::zero_with_waiters:
        if (add_and_wake(n)) return;
    }
  }
}

// The count is about to become zero and somebody waits. False: they have all been dropped, nothing
// happened.
bool WaitGroup::add_and_wake(std::int64_t n) {
  WaitGroupWord::Added added;
  {
    Presence presence;
    sync::Woken<> woken;
    WaitList& list = as_list(waiters_);
    as_lock(lock_).lock();
    if (list.first(presence) == nullptr) {
      WaitGroupWord::clear_waiters(state_);
      as_lock(lock_).unlock();
      return false;
    }
    added = WaitGroupWord::add_locked(state_, n);
    if (added == WaitGroupWord::Added::zero_with_waiters) {
      while (sched::WaitRecord* record = list.first(presence)) {
        list.unlink(*record);
        woken.add(static_cast<Sleeper&>(*record));
      }
    }
    as_lock(lock_).unlock();
    woken.wake_all();
  }
  if (added == WaitGroupWord::Added::out_of_range) throw_out_of_range(n);
  return true;
}

// The run() first: a reader that sees the count also sees which run() it belongs to.
WaitGroup::Starting::Starting(WaitGroup& group)
    : keeps_run_(sched::current_m() == nullptr && sched::begin_visit()) {
  if (keeps_run_ || sched::current_m() != nullptr) {  // else go() will refuse
    std::uint64_t run = sched::current_run();
    // relaxed: add() releases it
    if (group.run_.load(base::relaxed) != run) group.run_.store(run, base::relaxed);
  }
  try {
    group.add(1);
  } catch (...) {
    if (keeps_run_) sched::end_visit();
    throw;
  }
}

WaitGroup::Starting::~Starting() {
  if (keeps_run_) sched::end_visit();
}

// Some that it counts are gone: nobody will be done for them.
bool WaitGroup::counts_dropped() const {
  if (WaitGroupWord::is_zero(state_)) return false;  // acquires; with Starting
  std::uint64_t run = run_.load(base::relaxed);
  return run != 0 && sched::is_over(run);
}

// What a wait does when some that the group counts are gone.
enum class IfDropped { waits_on, says_so, gives_up };

struct WaitGroup::Insides {
  struct GroupSleeper : Sleeper {
    GroupSleeper(WaitGroup& its, IfDropped what) : Sleeper(&its), group(its), if_dropped(what) {}
    WaitGroup& group;
    IfDropped if_dropped;
    bool gave_up = false;
  };

  static bool unlock_when_asleep(sched::Waiter&, void* sleeper) {
    as_lock(static_cast<GroupSleeper*>(sleeper)->group.lock_).unlock();
    return true;
  }

  static void say_so() {
    base::warn(
        "WaitGroup::wait() waits for goroutines that were dropped when their run() ended, and will "
        "never be done; a WaitGroup that outlives run() must be waited for inside it");
  }

  // By a plain thread that is told of the end of a run().
  static void look_again(void* sleeper) {
    auto& self = *static_cast<GroupSleeper*>(sleeper);
    if (!self.group.counts_dropped()) return;
    if (self.if_dropped == IfDropped::says_so) {
      self.if_dropped = IfDropped::waits_on;
      say_so();
    } else if (self.if_dropped == IfDropped::gives_up) {
      give_up(self);
    }
  }
  static void give_up(GroupSleeper& self) {
    WaitList& list = as_list(self.group.waiters_);
    Presence presence;
    as_lock(self.group.lock_).lock();
    self.gave_up = list.holds(self, presence);
    if (self.gave_up) list.unlink(self);
    as_lock(self.group.lock_).unlock();
    if (self.gave_up) self.waiter.wake();
  }

  // Time is up, or the context is over. False: too late, the count has become zero.
  static bool withdraw(sched::Waiter&, void* sleeper) {
    auto& self = *static_cast<GroupSleeper*>(sleeper);
    WaitList& list = as_list(self.group.waiters_);
    Presence presence;
    as_lock(self.group.lock_).lock();
    bool listed = list.holds(self, presence);
    if (listed) {
      list.unlink(self);
      if (list.first(presence) == nullptr) WaitGroupWord::clear_waiters(self.group.state_);
    }
    as_lock(self.group.lock_).unlock();
    return listed;
  }

  static Waited wait(WaitGroup& group, IfDropped if_dropped, const detail::WaitLimit& limit) {
    sched::Entry entry;
    GroupSleeper self(group, if_dropped);
    sched::ToldOfRunEnd told(self.waiter);
    // A thread may have come too late to be told.
    if (self.waiter.is_thread() && group.counts_dropped()) {
      if (if_dropped == IfDropped::gives_up) return Waited::dropped;
      look_again(&self);
    }
    as_lock(group.lock_).lock();
    if (!WaitGroupWord::announce_waiter(group.state_)) {
      as_lock(group.lock_).unlock();
      return Waited::zero;
    }
    as_list(group.waiters_).push(self, Presence());
    constexpr auto kReason = sched::WaitReason::wait_group;
    bool woken = limit.source == nullptr
                     ? self.waiter.wait_until(limit.deadline, kReason, unlock_when_asleep, withdraw,
                                              &self, look_again)
                     : limit.source->wait(self.waiter, limit.deadline, kReason, unlock_when_asleep,
                                          withdraw, &self, look_again);
    if (!woken) return Waited::limit_reached;
    return self.gave_up ? Waited::dropped : Waited::zero;
  }
};

void WaitGroup::wait() { (void)wait_within({}); }

bool WaitGroup::wait_within(const detail::WaitLimit& limit) {
  if (!WaitGroupWord::is_zero(state_)) {
    if (limit.deadline <= base::now_ns()) return false;
    bool counts_some = counts_dropped();
    if (counts_some) Insides::say_so();
    IfDropped if_dropped = counts_some ? IfDropped::waits_on : IfDropped::says_so;
    if (Insides::wait(*this, if_dropped, limit) != Waited::zero) return false;
  }
  forget_run();
  return true;
}

// All that were started are done: what is counted from now on may have no run(). If a goroutine is
// started at this moment, its drop may go unsaid.
void WaitGroup::forget_run() {
  if (run_.load(base::relaxed) != 0) run_.store(0, base::relaxed);
}

WaitGroup::Waited WaitGroup::wait_unless_dropped(const detail::WaitLimit& limit) {
  if (WaitGroupWord::is_zero(state_)) return Waited::zero;
  if (counts_dropped()) return Waited::dropped;
  if (limit.deadline <= base::now_ns()) return Waited::limit_reached;
  return Insides::wait(*this, IfDropped::gives_up, limit);
}

void WaitGroup::forget_dropped() {
  if (counts_dropped()) add(-WaitGroupWord::count_of(state_));
}

}  // namespace magpie
