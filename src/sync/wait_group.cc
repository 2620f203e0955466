#include <mutex>
#include <stdexcept>

#include <magpie/sync.h>

#include "base/lock.h"
#include "sched/waiter.h"
#include "sync/wait_group_core.h"

namespace magpie {

using sched::Waiter;
using sync::WaitGroupWord;

static_assert(sizeof(base::Lock) == sizeof(std::atomic<std::uint32_t>));

namespace {

// The group's lock word, as what it is.
base::Lock& as_lock(std::atomic<std::uint32_t>& word) {
  return reinterpret_cast<base::Lock&>(word);
}

}  // namespace

void WaitGroup::add(std::int64_t n) {
  switch (WaitGroupWord::add(state_, n)) {
    case WaitGroupWord::Added::done:
      return;
    case WaitGroupWord::Added::out_of_range:
      throw std::logic_error(n < 0 ? "magpie: WaitGroup count below zero: more done() than add()"
                                   : "magpie: WaitGroup count above 2^31 - 1");
    case WaitGroupWord::Added::reached_zero_with_waiters:
      break;
  }
  as_lock(lock_).lock();
  WaitGroupWord::clear_waiters(state_);
  auto* waiter = static_cast<Waiter*>(std::exchange(waiters_, nullptr));
  as_lock(lock_).unlock();
  while (waiter != nullptr) {
    Waiter* next = waiter->next;  // a woken waiter's record may be gone
    waiter->wake();
    waiter = next;
  }
}

void WaitGroup::wait() {
  if (WaitGroupWord::is_zero(state_)) return;
  as_lock(lock_).lock();
  if (!WaitGroupWord::announce_waiter(state_)) {
    as_lock(lock_).unlock();
    return;
  }
  Waiter waiter;
  waiter.next = static_cast<Waiter*>(waiters_);
  waiters_ = &waiter;
  waiter.wait(
      sched::WaitReason::wait_group,
      [](Waiter&, void* group_lock) {
        static_cast<base::Lock*>(group_lock)->unlock();
        return true;
      },
      &as_lock(lock_));
}

}  // namespace magpie
