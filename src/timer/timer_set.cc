#include "timer/timer_set.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "base/check.h"
#include "base/cpu.h"
#include "base/guard.h"

namespace magpie::timer {

// ---- in order

void TimerSet::InOrder::put(std::uint64_t place, Entry entry) {
  at(place) = entry;
  if (entry.timer != nullptr) entry.timer->place = kInOrder | place;
}

bool TimerSet::InOrder::insert(Timer& timer, std::int64_t when_ns) {
  std::uint64_t behind = 0;  // how many at the end are later
  while (behind < end_ - first_ && at(end_ - 1 - behind).when_ns > when_ns) {
    if (++behind > kMostMoved) return false;
  }
  if (end_ - first_ == capacity_ && !make_room()) return false;
  // Places are counted from the end: making room may have moved everything.
  behind = std::min(behind, end_ - first_);
  while (behind > 0 && at(end_ - behind).when_ns <= when_ns) --behind;
  std::uint64_t place = end_++;
  for (; behind > 0; --behind, --place) put(place, at(place - 1));
  put(place, {when_ns, &timer});
  return true;
}

// Asks the kernel for memory under the lock: growth is rare.
bool TimerSet::InOrder::make_room() {
  if (dead_ * 2 > capacity_) return move_to(capacity_);
  return move_to(std::max(capacity_ * 2, kSmallest));
}

// Leaves the dead entries behind.
bool TimerSet::InOrder::move_to(std::uint64_t capacity) {
  base::PageArray<Entry> old;
  if (!old.grow_to(capacity)) return false;
  std::swap(old, entries_);
  std::uint64_t old_mask = capacity_ - 1;
  std::uint64_t from = first_, to = end_;
  capacity_ = capacity;
  first_ = end_ = dead_ = 0;
  for (; from != to; ++from) {
    if (Entry entry = old[from & old_mask]; entry.timer != nullptr) put(end_++, entry);
  }
  return true;
}

void TimerSet::InOrder::remove(std::uint64_t place) {
  at(place).timer = nullptr;
  ++dead_;
  trim();
}

void TimerSet::InOrder::pop_front() {
  ++first_;
  trim();
}

// Afterwards the first and the last entry are alive, or there are none.
void TimerSet::InOrder::trim() {
  while (first_ != end_ && at(first_).timer == nullptr) ++first_, --dead_;
  while (first_ != end_ && at(end_ - 1).timer == nullptr) --end_, --dead_;
  if (first_ == end_ && capacity_ > 1024) {
    entries_.reset();
    capacity_ = 0;
  }
}

// ---- out of order

void TimerSet::Heap::put(std::uint64_t place, Entry entry) {
  entries_[place] = entry;
  if (entry.timer != nullptr) entry.timer->place = kInHeap | place;
}

bool TimerSet::Heap::insert(Timer& timer, std::int64_t when_ns) {
  if (count_ == capacity_) {
    std::uint64_t capacity = std::max(capacity_ * 2, kSmallest);
    if (!entries_.grow_to(capacity)) return false;
    capacity_ = capacity;
  }
  sift_up(count_++, {when_ns, &timer});
  return true;
}

void TimerSet::Heap::sift_up(std::uint64_t place, Entry entry) {
  while (place != 0) {
    std::uint64_t parent = (place - 1) / kChildren;
    if (entries_[parent].when_ns <= entry.when_ns) break;
    put(place, entries_[parent]);
    place = parent;
  }
  put(place, entry);
}

// The earliest child of this place, if it is earlier than the entry; else the place itself.
std::uint64_t TimerSet::Heap::place_below(std::uint64_t place, Entry entry) {
  std::uint64_t child = place * kChildren + 1;
  if (child >= count_) return place;
  std::uint64_t earliest = child;
  for (std::uint64_t end = std::min(child + kChildren, count_); ++child < end;) {
    if (entries_[child].when_ns < entries_[earliest].when_ns) earliest = child;
  }
  return entries_[earliest].when_ns < entry.when_ns ? earliest : place;
}

void TimerSet::Heap::sift_down(std::uint64_t place, Entry entry) {
  for (std::uint64_t below; (below = place_below(place, entry)) != place; place = below)
    put(place, entries_[below]);
  put(place, entry);
}

bool TimerSet::Heap::make_room(std::uint64_t entries) {
  if (count_ + entries <= capacity_) return true;
  std::uint64_t capacity = std::max(capacity_ * 2, kSmallest);
  while (capacity < count_ + entries) capacity *= 2;
  if (!entries_.grow_to(capacity)) return false;
  capacity_ = capacity;
  return true;
}

// From the leaves up, which takes time in proportion to the entries. A timer is a cache line that
// was not touched for long: each is touched once, and fetched before.
void TimerSet::Heap::settle(TimerSet* set) {
  constexpr std::uint64_t kAhead = 16;
  count_ = static_cast<std::uint64_t>(
      std::remove_if(&entries_[0], &entries_[count_], [](Entry e) { return e.timer == nullptr; }) -
      &entries_[0]);
  dead_ = 0;
  for (std::uint64_t i = count_ < 2 ? 0 : (count_ - 2) / kChildren + 1; i-- > 0;) {
    Entry entry = entries_[i];
    std::uint64_t place = i;
    for (std::uint64_t below; (below = place_below(place, entry)) != place; place = below)
      entries_[place] = entries_[below];
    entries_[place] = entry;
  }
  for (std::uint64_t i = 0; i < count_; ++i) {
    if (i + kAhead < count_) base::prefetch_to_write(entries_[i + kAhead].timer);
    put(i, entries_[i]);
    entries_[i].timer->word.enter(set);
  }
}

void TimerSet::Heap::remove(std::uint64_t place) {
  entries_[place].timer = nullptr;
  ++dead_;
  trim();
  if (dead_ > kSmallest && dead_ * 2 > count_) drop_dead();
}

void TimerSet::Heap::pop_top() {
  entries_[0].timer = nullptr;
  ++dead_;
  trim();
}

// Afterwards the first and the last entry are alive, or there are none.
void TimerSet::Heap::trim() {
  while (count_ != 0 && entries_[count_ - 1].timer == nullptr) --count_, --dead_;
  while (count_ != 0 && entries_[0].timer == nullptr) {
    --dead_;
    if (--count_ != 0) sift_down(0, entries_[count_]);
    while (count_ != 0 && entries_[count_ - 1].timer == nullptr) --count_, --dead_;
  }
  if (count_ == 0 && capacity_ > 1024) {
    entries_.reset();
    capacity_ = 0;
  }
}

void TimerSet::Heap::pop_last() {
  --count_;
  trim();
}

void TimerSet::Heap::drop_dead() {
  std::uint64_t kept = 0;
  for (std::uint64_t i = 0; i < count_; ++i) {
    if (entries_[i].timer != nullptr) put(kept++, entries_[i]);
  }
  count_ = kept;
  dead_ = 0;
  for (std::uint64_t i = count_; i-- > 0;) sift_down(i, entries_[i]);
}

// ---- strays

void TimerSet::add_stray_locked(Timer& timer) {
  timer.place = kStray;
  timer.previous = nullptr;
  timer.next = strays_;
  if (strays_ != nullptr) strays_->previous = &timer;
  strays_ = &timer;
}

void TimerSet::remove_stray_locked(Timer& timer) {
  (timer.previous == nullptr ? strays_ : timer.previous->next) = timer.next;
  if (timer.next != nullptr) timer.next->previous = timer.previous;
}

Timer* TimerSet::earliest_stray_locked() {
  Timer* earliest = strays_;
  for (Timer* timer = strays_; timer != nullptr; timer = timer->next) {
    if (timer->when_ns < earliest->when_ns) earliest = timer;
  }
  return earliest;
}

// ---- all of them

void TimerSet::publish_locked(std::size_t size) {
  std::int64_t earliest = kNever;
  if (Entry* entry = in_order_.front()) earliest = entry->when_ns;
  if (Entry* entry = heap_.top()) earliest = std::min(earliest, entry->when_ns);
  if (strays_ != nullptr) earliest = std::min(earliest, earliest_stray_locked()->when_ns);
  // Relaxed: the fences of sched/rest/timer_duty.h order it for Ms that sleep by it.
  if (earliest_ns_.load(base::relaxed) != earliest) earliest_ns_.store(earliest, base::relaxed);
  size_.store(size, base::relaxed);
}

bool TimerSet::insert_locked(Timer& timer, std::int64_t when_ns) {
  std::int64_t before = earliest_ns();
  timer.when_ns = when_ns;
  timer.word.enter(this);
  if (!in_order_.insert(timer, when_ns) && !heap_.insert(timer, when_ns)) add_stray_locked(timer);
  size_.store(size() + 1, base::relaxed);
  if (when_ns >= before) return false;
  earliest_ns_.store(when_ns, base::relaxed);  // relaxed: as in publish_locked
  return true;
}

bool TimerSet::insert(Timer& timer, std::int64_t when_ns) {
  base::Guard hold(lock_);
  return insert_locked(timer, when_ns);
}

void TimerSet::remove_locked(Timer& timer) {
  std::uint64_t place = timer.place & ~kPart;
  switch (timer.place & kPart) {
    case kInOrder:
      in_order_.remove(place);
      break;
    case kInHeap:
      heap_.remove(place);
      break;
    default:
      remove_stray_locked(timer);
  }
  timer.word.make_idle();
  publish_locked(size() - 1);
}

TimerSet::Removal TimerSet::remove(Timer& timer) {
  for (;;) {
    auto [set, firing] = timer.word.view();
    if (set == nullptr) return firing ? Removal::firing : Removal::idle;
    if (set->is_forgotten()) [[unlikely]] {
      timer.word.make_idle();
      return Removal::removed;
    }
    base::Guard hold(set->lock_);
    if (timer.word.view().set != set) continue;  // it was taken, or moved, meanwhile
    set->remove_locked(timer);
    return Removal::removed;
  }
}

Timer* TimerSet::take_earliest_locked(std::int64_t not_after_ns) {
  Entry* first = in_order_.front();
  Entry* top = heap_.top();
  Timer* timer = strays_ == nullptr ? nullptr : earliest_stray_locked();
  std::int64_t when = timer == nullptr ? kNever : timer->when_ns;
  enum class From { strays, in_order, heap } from = From::strays;
  if (top != nullptr && (timer == nullptr || top->when_ns < when)) {
    from = From::heap, timer = top->timer, when = top->when_ns;
  }
  if (first != nullptr && (timer == nullptr || first->when_ns <= when)) {
    from = From::in_order, timer = first->timer, when = first->when_ns;
  }
  if (timer == nullptr || when > not_after_ns) return nullptr;
  if (from == From::in_order) {
    in_order_.prefetch();
    in_order_.pop_front();
  } else if (from == From::heap) {
    heap_.pop_top();
  } else {
    remove_stray_locked(*timer);
  }
  return timer;
}

std::size_t TimerSet::take_due(std::int64_t now_ns, std::span<Timer*> out) {
  base::Guard hold(lock_);
  std::size_t count = 0;
  while (count < out.size()) {
    Timer* timer = take_earliest_locked(now_ns);
    if (timer == nullptr) break;
    timer->word.take();
    out[count++] = timer;
  }
  if (count != 0) publish_locked(size() - count);
  return count;
}

// All but the strays, to the heap of the other set.
void TimerSet::move_many_locked(TimerSet& other) {
  if (!other.heap_.make_room(size())) return;
  std::size_t moved = 0;
  for (; Entry* entry = in_order_.front(); ++moved) {
    other.heap_.append(*entry);
    in_order_.pop_front();
  }
  for (; Entry* entry = heap_.last(); ++moved) {
    other.heap_.append(*entry);
    heap_.pop_last();
  }
  other.heap_.settle(&other);
  other.publish_locked(other.size() + moved);
}

void TimerSet::move_all_to(TimerSet& other) {
  constexpr std::size_t kFew = 64;
  std::scoped_lock hold(lock_, other.lock_);
  lock_.assume_held();
  other.lock_.assume_held();
  if (size() > kFew) move_many_locked(other);
  // the few, the strays, and all if there is no memory
  while (Timer* timer = take_earliest_locked(kNever)) other.insert_locked(*timer, timer->when_ns);
  publish_locked(0);
}

Timer* TimerSet::take_any() {
  base::Guard hold(lock_);
  Timer* timer = take_earliest_locked(kNever);
  if (timer == nullptr) return nullptr;
  timer->word.take();
  publish_locked(size() - 1);
  return timer;
}

}  // namespace magpie::timer
