// woken_mark.h: a waiter has been woken, or handed the lock, and has yet to come for it.
//
// A woken goroutine may be dropped before it runs, when run() ends. So the mark is the generation
// of the woken goroutine, and means nothing in another generation. A goroutine that was handed the
// lock has another mark: it owns the lock unless it has been dropped, which is certain once its
// run() is over. (This is the short form of in_transit.h for a single owner.)
#pragma once

#include <atomic>
#include <cstdint>

#include "base/atomic.h"
#include "sched/run_end.h"
#include "sched/wait_list.h"

namespace magpie::sync {

// Guarded like the list, but for arrive(). A bare number, so that public types can keep one.
class WokenMark {
 public:
  explicit WokenMark(std::atomic<std::uint64_t>& storage) : mark_(storage) {}

  bool is_set(const sched::Presence& presence) const {
    std::uint64_t mark = get();
    return mark == kThread || (mark != kNobody && mark == presence.generation());
  }
  void set(const sched::WaitRecord& woken, const sched::Presence& presence) {
    put(woken.is_thread ? kThread : presence.generation());
  }
  void clear() { put(kNobody); }

  // The lock was handed to `owner`. No waiter is woken then, and only the owner changes the mark
  // before it has come.
  void set_handed(const sched::WaitRecord& owner, const sched::Presence& presence) {
    put(owner.is_thread ? kNobody : presence.generation() | kHanded);
  }
  // By the new owner, without the list's lock.
  void arrive() { clear(); }
  // The goroutine that the lock was handed to was dropped before it came. The caller owns the lock
  // now.
  [[nodiscard]] bool take_lock_back() {
    std::uint64_t mark = get();
    if ((mark & kHanded) == 0 || mark == kThread || !sched::is_over(mark & ~kHanded)) return false;
    clear();
    return true;
  }

 private:
  static constexpr std::uint64_t kNobody = 0, kThread = ~std::uint64_t{0};
  static constexpr std::uint64_t kHanded = std::uint64_t{1} << 63;

  // relaxed: the list's lock orders them; arrive() comes after the hand-over
  std::uint64_t get() const { return mark_.load(base::relaxed); }
  void put(std::uint64_t mark) { mark_.store(mark, base::relaxed); }

  std::atomic<std::uint64_t>& mark_;
};

}  // namespace magpie::sync
