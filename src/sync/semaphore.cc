// semaphore.cc: the slow half of Semaphore. Protocol [semaphore]: semaphore_core.h.
#include <stdexcept>
#include <string>

#include <magpie/detail/short_way.h>
#include <magpie/semaphore.h>

#include "base/clock.h"
#include "sync/in_transit.h"
#include "sync/semaphore_core.h"
#include "sync/sleeper.h"
#include "sync/storage.h"
#include "sync/until.h"

namespace magpie {

using sched::Presence;
using sched::Waiter;
using sched::WaitList;
using sync::as_list;
using sync::as_lock;
using sync::InTransit;
using sync::SemaphoreWord;

static_assert(Semaphore::max() == SemaphoreWord::kMost);
static_assert(detail::ShortWay::kMostUnits == SemaphoreWord::kMost);

namespace {

// References, not the Semaphore: its insides are private.
struct UnitSleeper : sync::Sleeper {
  UnitSleeper(const Semaphore& its, SemaphoreWord::Word& w, base::UncheckedLock& l,
              WaitList& waiters, InTransit its_given, std::int64_t wanted)
      : Sleeper(&its), word(w), lock(l), list(waiters), given(its_given), units(wanted) {}
  SemaphoreWord::Word& word;
  base::UncheckedLock& lock;
  WaitList& list;
  InTransit given;
  const std::int64_t units;
};

using Served = sync::Woken<UnitSleeper>;

// Gives the first on the list what they wait for, while there is enough. The caller holds the lock.
Served serve(SemaphoreWord::Word& word, WaitList& list, InTransit given, const Presence& presence) {
  Served served;
  SemaphoreWord::put_back_locked(word, static_cast<std::int64_t>(given.take_back()));
  for (;;) {
    auto* first = static_cast<UnitSleeper*>(list.first(presence));
    if (first == nullptr) {
      SemaphoreWord::clear_waiters(word);
      return served;
    }
    if (!SemaphoreWord::take_locked(word, first->units)) return served;
    list.unlink(*first);
    given.note(*first, static_cast<std::uint64_t>(first->units), presence);
    served.add(*first);
  }
}

bool unlock_list(Waiter&, void* sleeper) {
  static_cast<UnitSleeper*>(sleeper)->lock.unlock();
  return true;
}

// Time is up, or the context is over. False: too late, it has been served. The waiters behind it
// may want less.
bool withdraw_acquirer(Waiter&, void* sleeper) {
  auto& self = *static_cast<UnitSleeper*>(sleeper);
  Presence presence;
  self.lock.lock();
  bool listed = self.list.holds(self, presence);
  Served served;
  if (listed) {
    self.list.unlink(self);
    served = serve(self.word, self.list, self.given, presence);
  }
  self.lock.unlock();
  served.wake_all();
  return listed;
}

// A plain thread in line is told that a run() has ended: others ahead of it may be gone, or have
// been given units and not come for them.
void look_again(void* sleeper) {
  auto& self = *static_cast<UnitSleeper*>(sleeper);
  Presence presence;
  self.lock.lock();
  Served served = serve(self.word, self.list, self.given, presence);
  self.lock.unlock();
  served.wake_all();
}

void check_units(std::int64_t units) {
  if (units >= 0 && units <= SemaphoreWord::kMost) return;
  throw std::logic_error("magpie: Semaphore: " + std::to_string(units) +
                         " units; 0 to 2^62 - 1 make sense");
}

[[noreturn]] void throw_too_many() {
  throw std::logic_error("magpie: Semaphore: release() beyond 2^62 - 1 units");
}

}  // namespace

Semaphore::Semaphore(std::int64_t units) : word_(SemaphoreWord::pack(units)) { check_units(units); }

bool Semaphore::try_acquire_slow(std::int64_t units) {
  if (detail::short_way.is_closed()) sched::Entry gives_way;
  check_units(units);
  if (units == 0) return true;
  for (;;) {
    switch (SemaphoreWord::try_take(word_, units)) {
      case SemaphoreWord::Taken::yes:
        return true;
      case SemaphoreWord::Taken::too_few:
        if (!InTransit(given_).looks_lost()) return false;
        break;
      case SemaphoreWord::Taken::others_wait:
        break;
    }
    // Unless all waiters have been dropped, or goroutines that were given units.
    Presence presence;
    as_lock(lock_).lock();
    Served served = serve(word_, as_list(waiters_), InTransit(given_), presence);
    bool others_wait = as_list(waiters_).first(presence) != nullptr;
    as_lock(lock_).unlock();
    served.wake_all();
    if (others_wait) return false;
    if (SemaphoreWord::looks_too_few(word_, units)) return false;
  }
}

bool Semaphore::acquire_slow(std::int64_t units, detail::DeadlineNs deadline) {
  check_units(units);
  if (units == 0) return true;
  if (deadline <= base::now_ns()) return try_acquire_slow(units);
  return wait_in_line(units, sync::UntilTime{deadline});
}

bool Semaphore::acquire_with(std::int64_t units, sched::CancelSource* source) {
  if (try_take(units)) return true;
  if (source == nullptr) return acquire_slow(units, detail::kNoDeadline);
  check_units(units);
  return units == 0 || wait_in_line(units, sync::UnlessOver{*source});
}

template <class Until>
bool Semaphore::wait_in_line(std::int64_t units, Until until) {
  sched::Entry entry;
  WaitList& list = as_list(waiters_);
  UnitSleeper self(*this, word_, as_lock(lock_), list, InTransit(given_), units);
  sched::ToldOfRunEnd told(self.waiter);
  for (;;) {
    Presence presence;
    as_lock(lock_).lock();
    // Somebody can be served only if others ahead of them have been dropped.
    Served served = serve(word_, list, self.given, presence);
    if (!served.any()) {
      if (list.first(presence) == nullptr && SemaphoreWord::take_or_ask(word_, units)) {
        as_lock(lock_).unlock();
        return true;
      }
      list.push(self, presence);
      break;
    }
    as_lock(lock_).unlock();
    served.wake_all();
  }
  bool served = until.wait(self.waiter, sched::WaitReason::semaphore, unlock_list,
                           withdraw_acquirer, &self, look_again);
  if (served) self.given.arrive(self, static_cast<std::uint64_t>(units));
  return served;
}

void Semaphore::release(std::int64_t units) {
  check_units(units);
  const std::int64_t most = detail::short_way.most_units.load(base::relaxed);
  if (SemaphoreWord::release(word_, units, most) != SemaphoreWord::Released::done) [[unlikely]]
    release_slow(units);
}

void Semaphore::release_slow(std::int64_t units) {
  if (!release_late(units)) throw_too_many();
}

// False: there would be too many, and it did nothing. A goroutine that is dropped here has given
// the units back.
bool Semaphore::release_late(std::int64_t units) {
  sched::LateEntry entry;
  for (;;) {
    switch (SemaphoreWord::release(word_, units)) {
      case SemaphoreWord::Released::done:
        return true;
      case SemaphoreWord::Released::too_many:
        return false;
      case SemaphoreWord::Released::others_wait:
        break;
    }
    Presence presence;
    WaitList& list = as_list(waiters_);
    as_lock(lock_).lock();
    bool others_wait = list.first(presence) != nullptr;
    bool too_many = others_wait && !SemaphoreWord::put_locked(word_, units);
    Served served = serve(word_, list, InTransit(given_), presence);
    as_lock(lock_).unlock();
    served.wake_all_late(entry);
    if (too_many) return false;
    if (others_wait) return true;  // else all waiters have been dropped, and it did nothing
  }
}

}  // namespace magpie
