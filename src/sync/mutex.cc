// mutex.cc: the slow half of Mutex: waiting in line, and serving the line. Protocol [mutex]:
// mutex_core.h.
#include <magpie/mutex.h>
#include <magpie/runtime.h>

#include "base/check.h"
#include "base/clock.h"
#include "sync/mutex_core.h"
#include "sync/sleeper.h"
#include "sync/spin.h"
#include "sync/storage.h"
#include "sync/until.h"
#include "sync/woken_mark.h"

namespace magpie::detail {

using sched::Presence;
using sched::Waiter;
using sched::WaitList;
using sched::WaitReason;
using sync::as_list;
using sync::as_lock;
using sync::MutexWord;
using sync::WokenMark;

namespace {

constexpr std::int64_t kStarvingNs = 1'000'000;

struct MutexSleeper : sync::Sleeper {
  explicit MutexSleeper(MutexState& its) : Sleeper(&its), mutex(its) {}
  MutexState& mutex;
  std::int64_t since_ns = 0;  // when it began to wait
  bool handed = false;        // the waker writes it; true: it owns the mutex
};

enum class Attempt {
  first,
  woken,
  last,  // woken, but time is up, or the context is over
};

// True: taken. False, with the list's lock held: on the list; or, on the last attempt, without the
// lock: given up.
bool take_or_get_in_line(MutexSleeper& self, Attempt attempt) {
  MutexState& mutex = self.mutex;
  WaitList& list = as_list(mutex.waiters);
  std::int64_t now = base::now_ns();
  if (attempt == Attempt::first) self.since_ns = now;

  Presence presence;
  as_lock(mutex.lock).lock();
  WokenMark woken(mutex.woken);
  if (woken.take_lock_back()) {
    as_lock(mutex.lock).unlock();
    return true;
  }
  if (attempt != Attempt::first) woken.clear();
  bool alone = list.first(presence) == nullptr;
  bool is_woken = woken.is_set(presence);
  MutexWord::Held take_as = alone || is_woken ? MutexWord::held : MutexWord::call;
  MutexWord::Held ask_for = MutexWord::call;
  if (is_woken) {
    ask_for = MutexWord::held;  // the woken waiter will look at the list
  } else if (attempt == Attempt::last) {
    ask_for = take_as;  // for the waiters that are left
  } else if (attempt == Attempt::woken && now - self.since_ns >= kStarvingNs) {
    ask_for = MutexWord::starving;
  }
  bool taken = MutexWord::take_or_ask(mutex.word, take_as, ask_for);
  if (taken || attempt == Attempt::last) {
    as_lock(mutex.lock).unlock();
  } else if (attempt == Attempt::first) {
    list.push(self, presence);
  } else {
    list.push_front(self, presence);
  }
  return taken;
}

bool unlock_list(Waiter&, void* sleeper) {
  as_lock(static_cast<MutexSleeper*>(sleeper)->mutex.lock).unlock();
  return true;
}

// Time is up, or the context is over. False: too late, it has been taken off the list to be woken.
bool withdraw_locker(Waiter&, void* sleeper) {
  auto& self = *static_cast<MutexSleeper*>(sleeper);
  MutexState& mutex = self.mutex;
  WaitList& list = as_list(mutex.waiters);
  Presence presence;
  as_lock(mutex.lock).lock();
  bool listed = list.holds(self, presence);
  if (listed) {
    list.unlink(self);
    if (list.first(presence) == nullptr) MutexWord::stop_asking(mutex.word);
  }
  as_lock(mutex.lock).unlock();
  return listed;
}

// A plain thread that waits in line is told that a run() has ended: the goroutine that was woken,
// or handed the mutex, may be gone, and nobody would look at the line.
void look_again(void* sleeper) {
  MutexState& mutex = static_cast<MutexSleeper*>(sleeper)->mutex;
  WaitList& list = as_list(mutex.waiters);
  bool owns;
  {
    Presence presence;
    as_lock(mutex.lock).lock();
    WokenMark woken(mutex.woken);
    owns = woken.take_lock_back();
    if (!owns && list.first(presence) != nullptr && !woken.is_set(presence))
      owns = MutexWord::take_or_ask(mutex.word, MutexWord::call, MutexWord::call);
    as_lock(mutex.lock).unlock();
  }
  if (owns) unlock(mutex);  // which serves the line
}

// A newcomer may take the mutex by itself.
bool spin_to_take(MutexState& mutex) {
  for (int i = 0; i < sync::kSpins && sync::is_worth_spinning(); ++i) {
    sync::spin_a_while();
    if (MutexWord::looks_free(mutex.word) && MutexWord::try_take(mutex.word)) return true;
    if (MutexWord::looks_starving(mutex.word)) return false;
  }
  return false;
}

// A woken one takes it under the list's lock.
void spin_while_taken(MutexState& mutex) {
  for (int i = 0; i < sync::kSpins && !MutexWord::looks_free(mutex.word); ++i) {
    if (!sync::is_worth_spinning()) return;
    sync::spin_a_while();
  }
}

template <class Until>
bool wait_in_line(MutexState& mutex, WaitReason reason, Until until) {
  MutexSleeper self(mutex);
  sched::ToldOfRunEnd told(self.waiter);
  Attempt attempt = Attempt::first;
  for (;;) {
    if (take_or_get_in_line(self, attempt)) return true;
    if (attempt == Attempt::last) return false;
    if (!until.wait(self.waiter, reason, unlock_list, withdraw_locker, &self, look_again))
      return false;
    if (self.handed) {
      if (!self.is_thread) WokenMark(mutex.woken).arrive();
      return true;
    }
    spin_while_taken(mutex);
    attempt = until.is_over() ? Attempt::last : Attempt::woken;
  }
}

WaitReason reason_of(LockedBy what) {
  return what == LockedBy::mutex ? WaitReason::mutex : WaitReason::once;
}

// The first on the list owns the mutex next. Under the list's lock; nobody else can take it.
void hand_to_first(MutexState& mutex, MutexSleeper& first, const Presence& presence) {
  WaitList& list = as_list(mutex.waiters);
  list.unlink(first);
  first.handed = true;
  WokenMark(mutex.woken).set_handed(first, presence);
  MutexWord::Held as = MutexWord::held;
  if (list.first(presence) != nullptr) {
    bool starved = base::now_ns() - first.since_ns >= kStarvingNs;
    as = starved ? MutexWord::starving : MutexWord::call;
  }
  MutexWord::hand_over(mutex.word, as);
}

}  // namespace

void lock_slow(MutexState& mutex, LockedBy what) noexcept {
  sched::Entry entry;
  if (spin_to_take(mutex)) return;
  (void)wait_in_line(mutex, reason_of(what), sync::UntilTime{kNoDeadline});
}

bool lock_until(MutexState& mutex, DeadlineNs deadline) noexcept {
  if (deadline <= base::now_ns()) return false;
  sched::Entry entry;
  return spin_to_take(mutex) || wait_in_line(mutex, WaitReason::mutex, sync::UntilTime{deadline});
}

bool lock_with(MutexState& mutex, sched::CancelSource* source, LockedBy what) noexcept {
  if (try_lock(mutex)) return true;
  if (source == nullptr) {
    lock_slow(mutex, what);
    return true;
  }
  sched::Entry entry;
  return spin_to_take(mutex) || wait_in_line(mutex, reason_of(what), sync::UnlessOver{*source});
}

// It was handed to a goroutine that a run() dropped before it came for it: it is the caller's.
bool try_lock_slow(MutexState& mutex) noexcept {
  sched::Entry entry;
  as_lock(mutex.lock).lock();
  bool taken = WokenMark(mutex.woken).take_lock_back();
  as_lock(mutex.lock).unlock();
  return taken;
}

void unlock_slow(MutexState& mutex) noexcept {
  sched::LateEntry entry;
  WaitList& list = as_list(mutex.waiters);
  while (!MutexWord::try_give_back(mutex.word)) {
    Presence presence;
    as_lock(mutex.lock).lock();
    auto* first = static_cast<MutexSleeper*>(list.first(presence));
    bool are_seen_to = first == nullptr || WokenMark(mutex.woken).is_set(presence);
    auto waiters = are_seen_to ? MutexWord::Waiters::none : MutexWord::Waiters::some;
    switch (MutexWord::give_back(mutex.word, waiters)) {
      case MutexWord::GivingBack::not_yet:
        as_lock(mutex.lock).unlock();
        continue;
      case MutexWord::GivingBack::was_free:
        base::fatal("goroutine %lu unlocks a Mutex that nobody holds",
                    static_cast<unsigned long>(goroutine_id()));
      case MutexWord::GivingBack::wake_first:
        list.unlink(*first);
        WokenMark(mutex.woken).set(*first, presence);
        as_lock(mutex.lock).unlock();
        sync::wake_late(entry, *first);
        return;
      case MutexWord::GivingBack::hand_to_first:
        hand_to_first(mutex, *first, presence);
        as_lock(mutex.lock).unlock();
        sync::wake_late(entry, *first);
        // It has waited long and owns what many may wait for: let it run at once, if it can run
        // here.
        if (presence.m() != nullptr) yield();
        return;
    }
  }
}

}  // namespace magpie::detail
