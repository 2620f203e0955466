// sleeper.h: the record of one that waits for a lock, on its stack.
#pragma once

#include "base/lock.h"
#include "sched/wait_list.h"
#include "sched/waiter.h"

namespace magpie::sync {

struct Sleeper : sched::WaitRecord {
  sched::Waiter waiter;
};

// For Waiter::wait: the list's lock is held until the waiter can be woken.
inline bool unlock_when_asleep(sched::Waiter&, void* lock) {
  static_cast<base::Lock*>(lock)->unlock();
  return true;
}

// A chain, linked by next, of sleepers that were taken off their list: collected under the list's lock, woken after.
template <class Record = Sleeper>
class Woken {
 public:
  void add(Record& record) {
    record.next = nullptr;
    *end_ = &record;
    end_ = &record.next;
  }
  bool any() const { return first_ != nullptr; }

  // Those who were woken may be gone, with their records and with what they waited for.
  void wake_all() {
    for (sched::WaitRecord* at = first_; at != nullptr;) {
      auto* record = static_cast<Record*>(at);
      at = at->next;
      record->waiter.wake();
    }
  }

 private:
  sched::WaitRecord* first_ = nullptr;
  sched::WaitRecord** end_ = &first_;
};

}  // namespace magpie::sync
