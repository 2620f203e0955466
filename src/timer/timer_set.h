// timer_set.h: the timers of one P, the earliest first.
//
//    in order    a ring of entries sorted by time. Most timers are as long as the one before (a
//                time-out, a period), so they come in order: put at the end, taken from the front,
//                without any sorting.
//    out of      a heap with four children per node, for timers that would have to go further back
//    order       than a few places.
//    strays      a list, for when there is no memory to grow the others: then nothing is lost, only
//                slow.
//
// Entries are pairs (time, timer), so that sorting touches no timer but those that move. A timer
// knows its place. Removing it leaves its entry behind as a dead one, without sorting. Dead entries
// at the front or the end are dropped at once, and all of them when they are more than the living.
// So a removal takes constant time, in the long run.
//
// One lock guards all. Only the earliest time and the size are read without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/cpu.h"
#include "base/page_array.h"
#include "base/quick_lock.h"
#include "timer/timer.h"

namespace magpie::timer {

class TimerSet {
 public:
  TimerSet() = default;
  TimerSet(const TimerSet&) = delete;
  TimerSet& operator=(const TimerSet&) = delete;

  base::QuickLock& lock() MAGPIE_RETURNS_LOCK(lock_) { return lock_; }

  // True: it is the earliest of this set now. Never fails. The timer is idle, or it fires and the
  // caller is its fire.
  bool insert(Timer& timer, std::int64_t when_ns);
  bool insert_locked(Timer& timer, std::int64_t when_ns) MAGPIE_REQUIRES(lock_);

  // [timer]
  enum class Removal { removed, idle, firing };
  static Removal remove(Timer& timer);

  // Takes out timers whose time has come, earliest first, as many as fit. They are firing now.
  std::size_t take_due(std::int64_t now_ns, std::span<Timer*> out);

  // kNever when there is none. Late for readers without the lock. A reader that must not miss a
  // timer fences, see sched/rest/timer_duty.h.
  std::int64_t earliest_ns() const { return earliest_ns_.load(base::relaxed); }
  std::size_t size() const { return size_.load(base::relaxed); }

  // No other thread uses either set meanwhile, except by remove(). The world stands still for it:
  // with memory for the larger set, it takes little more than a look at each timer.
  void move_all_to(TimerSet& other);

  // In the child of a fork(): no thread fires its timers, and another thread may have been changing
  // it. From now on the set is not touched, and removing a timer from it only lets the timer go.
  void forget() { size_.store(kForgotten, base::relaxed); }  // relaxed: there is one thread
  bool is_forgotten() const { return size_.load(base::relaxed) == kForgotten; }

  // Takes any timer out as if it were due, for the end of the scheduler; null: there is none.
  Timer* take_any();

 private:
  struct Entry {
    std::int64_t when_ns;
    Timer* timer;  // null: removed
  };

  // Entries first..end of a ring. A place counts from the first entry ever put into the ring.
  class InOrder {
   public:
    bool insert(Timer& timer, std::int64_t when_ns);  // false: does not belong here, or no memory
    void remove(std::uint64_t place);
    Entry* front() { return first_ == end_ ? nullptr : &at(first_); }
    void pop_front();
    // Timers that are likely to be taken soon lie in memory that was not touched for long.
    void prefetch() {
      if (end_ - first_ > kAhead) base::prefetch_to_write(at(first_ + kAhead).timer);
    }

   private:
    static constexpr std::uint64_t kSmallest = 256;  // a page
    static constexpr std::uint64_t kMostMoved = 8;
    static constexpr std::uint64_t kAhead = 8;

    Entry& at(std::uint64_t place) { return entries_[place & (capacity_ - 1)]; }
    void put(std::uint64_t place, Entry entry);
    bool make_room();
    bool move_to(std::uint64_t capacity);
    void trim();

    base::PageArray<Entry> entries_;
    std::uint64_t capacity_ = 0;  // a power of two
    std::uint64_t first_ = 0, end_ = 0;
    std::uint64_t dead_ = 0;
  };

  class Heap {
   public:
    bool insert(Timer& timer, std::int64_t when_ns);  // false: no memory
    void remove(std::uint64_t place);
    Entry* top() { return count_ == 0 ? nullptr : &entries_[0]; }
    void pop_top();

    Entry* last() { return count_ == 0 ? nullptr : &entries_[count_ - 1]; }
    void pop_last();

    // Many at a time, into the heap of `set`: make_room(), then append() for each, then settle().
    // No other call between.
    [[nodiscard]] bool make_room(std::uint64_t entries);
    void append(Entry entry) { entries_[count_++] = entry; }
    void settle(TimerSet* set);

   private:
    static constexpr std::uint64_t kChildren = 4;
    static constexpr std::uint64_t kSmallest = 256;  // a page

    void put(std::uint64_t place, Entry entry);
    std::uint64_t place_below(std::uint64_t place, Entry entry);
    void sift_up(std::uint64_t place, Entry entry);
    void sift_down(std::uint64_t place, Entry entry);
    void drop_dead();
    void trim();

    base::PageArray<Entry> entries_;
    std::uint64_t capacity_ = 0;
    std::uint64_t count_ = 0;
    std::uint64_t dead_ = 0;
  };

  // What a place means: the two highest bits tell the part, the others the entry there.
  static constexpr std::uint64_t kInOrder = 0, kInHeap = std::uint64_t{1} << 62,
                                 kStray = std::uint64_t{2} << 62;
  static constexpr std::uint64_t kPart = std::uint64_t{3} << 62;

  void add_stray_locked(Timer& timer) MAGPIE_REQUIRES(lock_);
  void remove_stray_locked(Timer& timer) MAGPIE_REQUIRES(lock_);
  Timer* earliest_stray_locked() MAGPIE_REQUIRES(lock_);
  void remove_locked(Timer& timer) MAGPIE_REQUIRES(lock_);
  void move_many_locked(TimerSet& other) MAGPIE_REQUIRES(lock_, other.lock_);
  Timer* take_earliest_locked(std::int64_t not_after_ns) MAGPIE_REQUIRES(lock_);
  void publish_locked(std::size_t size) MAGPIE_REQUIRES(lock_);

  static constexpr std::size_t kForgotten = ~std::size_t{0};

  base::QuickLock lock_;  // [quick-lock]: sets live as long as the scheduler
  InOrder in_order_ MAGPIE_GUARDED_BY(lock_);
  Heap heap_ MAGPIE_GUARDED_BY(lock_);
  Timer* strays_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  // atomic, written under lock_: read by anyone; see [timer-duty]
  base::Atomic<std::int64_t> earliest_ns_{kNever};
  base::Atomic<std::size_t> size_{0};
};

}  // namespace magpie::timer
