#include <stdexcept>

#include <magpie/wait_group.h>

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

// The count is about to become zero and somebody waits. False: they have all been dropped, nothing happened.
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

void WaitGroup::wait() {
  if (WaitGroupWord::is_zero(state_)) return;
  sched::Entry entry;
  as_lock(lock_).lock();
  if (!WaitGroupWord::announce_waiter(state_)) {
    as_lock(lock_).unlock();
    return;
  }
  Sleeper self;
  as_list(waiters_).push(self, Presence());
  self.waiter.wait(sched::WaitReason::wait_group, sync::unlock_when_asleep, &as_lock(lock_));
}

}  // namespace magpie
