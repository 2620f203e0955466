// sleeper.h: the record of a waiter for a lock, on the waiter's stack.
#pragma once

#include "base/lock.h"
#include "sched/entry.h"
#include "sched/wait_list.h"
#include "sched/waiter.h"

namespace magpie::sync {

struct Sleeper : sched::WaitRecord {
  explicit Sleeper(const void* object) : waiter(object) {}
  sched::Waiter waiter;
};

// For Waiter::wait: the list's lock is held until the waiter can be woken.
inline bool unlock_when_asleep(sched::Waiter&, void* lock) {
  static_cast<base::UncheckedLock*>(lock)->unlock();
  return true;
}

// Wakes a sleeper that was taken off its list, for a caller that may have to wait for a P first. A
// plain thread is woken before that.
inline void wake_late(sched::LateEntry& entry, Sleeper& sleeper) {
  if (!sleeper.is_thread) entry.get_p();
  sleeper.waiter.wake();
}

// A chain, linked by next, of sleepers that were taken off their list: collected under the list's
// lock, woken after.
template <class Record = Sleeper>
class Woken {
 public:
  void add(Record& record) {
    record.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &record;
    last_ = &record;
  }

  bool any() const { return first_ != nullptr; }

  // A woken sleeper may be gone at once, with its record and with what it waited for.
  void wake_all() {
    for_each([](Record& record) { record.waiter.wake(); });
  }
  // For a caller that may have to wait for a P: see wake_late().
  void wake_all_late(sched::LateEntry& entry) {
    Woken goroutines;
    for_each([&](Record& record) {
      if (record.is_thread) {
        record.waiter.wake();
      } else {
        goroutines.add(record);
      }
    });
    if (!goroutines.any()) return;
    entry.get_p();
    goroutines.wake_all();
  }
  template <class Wake>
  void for_each(Wake wake) {
    for (sched::WaitRecord* at = first_; at != nullptr;) {
      auto& record = static_cast<Record&>(*at);
      at = at->next;
      wake(record);
    }
  }

 private:
  sched::WaitRecord* first_ = nullptr;
  sched::WaitRecord* last_ = nullptr;
};

}  // namespace magpie::sync
