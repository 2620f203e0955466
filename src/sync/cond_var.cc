// cond_var.cc: a waiter is on a list before its lock is released. Protocol [signal]: signal_word.h.
#include <sched.h>

#include <magpie/blocking.h>
#include <magpie/cond_var.h>
#include <magpie/runtime.h>

#include "base/cpu.h"
#include "sync/signal_word.h"
#include "sync/sleeper.h"
#include "sync/storage.h"
#include "sync/until.h"

namespace magpie {

using sched::Presence;
using sched::Waiter;
using sched::WaitList;
using sync::as_list;
using sync::as_lock;
using sync::SignalWord;

namespace {

struct CondSleeper : sync::Sleeper {
  CondSleeper(const CondVar& its, base::UncheckedLock& l, WaitList& waiters,
              const std::stop_token* its_stop)
      : Sleeper(&its), lock(l), list(waiters), stop(its_stop) {
    // The waiter has yet to unlock the user's lock. A goroutine that run() drops must not keep it.
    sched::LateEntry entry;
    Presence presence;
    lock.lock();
    list.push(*this, presence);
    lock.unlock();
    entry.leave();
  }

  void take_off_list() {
    Presence presence;
    lock.lock();
    list.unlink(*this, presence);
    lock.unlock();
  }

  base::UncheckedLock& lock;
  WaitList& list;
  const std::stop_token* const stop;  // null: it waits without
  SignalWord signal;
};

// Lets the thread that is a few instructions behind go on.
void wait_a_little(int turn) {
  base::cpu_relax();
  if (turn % 100 == 0) sched_yield();
}

bool park(Waiter& waiter, void* sleeper) {
  if (!static_cast<CondSleeper*>(sleeper)->signal.park()) waiter.wake();
  return true;
}

bool withdraw_waiter(Waiter&, void* sleeper) {
  auto& self = *static_cast<CondSleeper*>(sleeper);
  SignalWord::Withdrawn withdrawn;
  for (int turn = 1; (withdrawn = self.signal.withdraw()) == SignalWord::Withdrawn::not_yet;
       ++turn) {
    wait_a_little(turn);
  }
  if (withdrawn == SignalWord::Withdrawn::no_notified) return false;
  self.take_off_list();
  return true;
}

// It has not parked and does not want to.
void give_up(CondSleeper& self) {
  sched::Entry entry;
  if (self.signal.cancel()) {
    self.take_off_list();
    return;
  }
  for (int turn = 1; !self.signal.is_signalled(); ++turn) wait_a_little(turn);
}

enum class HowMany { one, all };

// With `stopped`: only the waiters that wait with this token.
void notify(base::UncheckedLock& lock, WaitList& list, HowMany how_many,
            const std::stop_token* stopped = nullptr) {
  Presence presence;
  sync::Woken<CondSleeper> notified;
  lock.lock();
  for (sched::WaitRecord* at = list.first(presence); at != nullptr;) {
    auto& sleeper = static_cast<CondSleeper&>(*at);
    at = at->next;
    if (stopped != nullptr && (sleeper.stop == nullptr || *sleeper.stop != *stopped)) continue;
    if (!sleeper.signal.choose()) continue;  // it takes itself off the list
    list.unlink(sleeper);
    notified.add(sleeper);
    if (how_many == HowMany::one) break;
  }
  lock.unlock();
  notified.for_each([](CondSleeper& sleeper) {
    if (sleeper.signal.finish()) sleeper.waiter.wake();
  });
}

bool somebody_withdraws(base::UncheckedLock& lock, WaitList& list) {
  Presence presence;
  lock.lock();
  bool found = false;
  for (auto* at = list.first(presence); at != nullptr && !found; at = at->next) {
    found = static_cast<CondSleeper*>(at)->signal.is_withdrawn();
  }
  lock.unlock();
  return found;
}

}  // namespace

// Takes the lock even if the list looks empty: a waiter that withdraws takes itself off the list
// before it releases the lock.
CondVar::~CondVar() {
  while (somebody_withdraws(as_lock(lock_), as_list(waiters_))) yield();
}

void CondVar::notify_one() noexcept {
  // A goroutine that waited before this call is on the list: it got there before it released its
  // lock.
  if (as_list(waiters_).looks_empty()) return;
  notify(as_lock(lock_), as_list(waiters_), HowMany::one);
}

void CondVar::notify_all() noexcept {
  if (as_list(waiters_).looks_empty()) return;
  notify(as_lock(lock_), as_list(waiters_), HowMany::all);
}

// A waiter gets on the list and then looks whether a stop has been requested. Behind the list's
// lock the waiter sees the stop, or this function sees the waiter; without the lock both could
// miss. A stop_source calls this, and identifies its caller by the thread: so the goroutine stays
// there.
void CondVar::notify_stopped(const std::stop_token& stop) noexcept {
  ThreadLock here;
  notify(as_lock(lock_), as_list(waiters_), HowMany::all, &stop);
}

bool CondVar::wait_erased(UserLock user, detail::DeadlineNs deadline, const std::stop_token* stop) {
  return unlock_and_wait(user, sync::UntilTime{deadline}, stop);
}

bool CondVar::wait_with(UserLock user, sched::CancelSource* source) {
  if (source == nullptr) return wait_erased(user, detail::kNoDeadline, nullptr);
  return unlock_and_wait(user, sync::UnlessOver{*source}, nullptr);
}

template <class Until>
bool CondVar::unlock_and_wait(UserLock user, Until until, const std::stop_token* stop) {
  CondSleeper self(*this, as_lock(lock_), as_list(waiters_), stop);
  if (stop != nullptr && stop->stop_requested()) {
    give_up(self);
    return true;
  }
  try {
    user.do_unlock(user.lock);
  } catch (...) {
    give_up(self);
    throw;
  }
  bool notified =
      until.wait(self.waiter, sched::WaitReason::cond_var, park, withdraw_waiter, &self);
  [&]() noexcept { user.do_lock(user.lock); }();
  return notified;
}

}  // namespace magpie
