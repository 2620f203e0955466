// run_queue.h: the goroutines of one P that are ready: a ring of 256 and one slot ahead of it.
//
// Protocol  [run-queue]
//
//      [reserved_first_, reserved_end_)  head_                            tail_
//   ring:   | the owner takes these,  |  | anyone takes these, oldest first |   free
//           | nobody steals them      |
//
// Goal      The owner pushes and pops without locked instructions in the common case. Any number of
//           thieves take the oldest half with one locked instruction. The order is first in, first
//           out, so that nothing starves.
// Sides     push, pop, take_half: the owner, which is the M that holds the P.
//           steal_half: the owner of another queue. size, looks_empty: anyone.
// Reserved  The owner advances head_ by a small batch at a time, and then takes from the reserved
//           batch without contention. A batch is at most an eighth of the ring and at most kReserve
//           goroutines. So thieves always find much more than the batch denies them. In a short
//           ring the owner reserves one goroutine at a time.
// No twice  Slots leave [head_, tail_) only by a compare-exchange on head_. A thief copies first
//           and commits after. If the exchange fails, the thief forgets the copies.
// No reuse  The owner overwrites a slot only after it has seen head_ beyond it (acquire). The taker
//           moved head_ (release) after it had read the slot.
// Runnext   A slot of its own ahead of the ring, with its own protocol: next_slot.h.
// Rejected  Stealing from the young end, as deques do: the owner would need a full fence per pop,
//           and the oldest goroutine would wait longest.
// Orders    [run-queue] slots: relaxed, ordered by tail_ and head_. tail_: the owner releases,
//           thieves acquire. head_: thieves release; the owner acquires before it reuses. The
//           owner's own moves of head_ release nothing: only the owner reuses the slots.
// Proof     tests/model/run_queue_model.cc
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "sched/core/next_slot.h"
#include "sched/policy.h"

namespace magpie::sched {

struct G;

class RunQueue {
 public:
#ifdef MAGPIE_MODEL
  // Small, so that the checker reaches every full and empty state.
  static constexpr std::uint64_t kSlots = 4;
  static constexpr std::uint64_t kReserve = 2;
  static constexpr std::uint64_t kReserveShare = 2;
#else
  static constexpr std::uint64_t kSlots = policy::kRingSlots;
  static constexpr std::uint64_t kReserve = policy::kReserve;
  static constexpr std::uint64_t kReserveShare = policy::kReserveShare;
#endif
  static constexpr std::uint64_t kHalf = kSlots / 2;

  // Call this before the queue is used, if nothing can stop a goroutine that runs long. Then no
  // other goroutine may be reserved behind it.
  void reserve_one_at_a_time() { most_reserved_ = 1; }

  // Appends. False: the ring is full, and the caller owes g to the global queue; see spill().
  [[nodiscard]] bool push(G* g) {
    std::uint64_t tail = tail_.load(base::relaxed);  // relaxed: only we write it
    if (tail - known_free_ >= kSlots && !find_room(tail)) return false;
    slot(tail).store(g, base::relaxed);
    tail_.store(tail + 1, base::release);  // [run-queue] with steal_half's acquire
    return true;
  }

  // The oldest goroutine, or null.
  G* pop() {
    if (!has_reserved() && !reserve_some()) return nullptr;
    return pop_reserved();
  }

  // Owner. upcoming: the goroutine that pop() will return, if it is reserved already, else null.
  // take_upcoming: takes it.
  G* upcoming() { return has_reserved() ? slot(reserved_first_).load(base::relaxed) : nullptr; }
  void take_upcoming() { reserved_first_ = reserved_first_ + 1; }

  // Owner, after pop(). The goroutine that comes after `others` more, or null. Thieves may have it.
  G* ahead(std::uint64_t others) {
    std::uint64_t at = reserved_first_ + others;
    return at < tail_.load(base::relaxed) ? slot(at).load(base::relaxed) : nullptr;
  }

  // Owner. The goroutine that has waited longest in the ring, or null. A thief may have it.
  G* oldest() {
    if (G* reserved = upcoming()) return reserved;
    std::uint64_t head = head_.load(base::relaxed);
    return head != tail_.load(base::relaxed) ? slot(head).load(base::relaxed) : nullptr;
  }

  // Anyone. The owner has reserved goroutines, which no other M can take.
  bool has_reserved() const { return reserved_first_ != reserved_end_; }

  // Owner. There is a goroutine to pop(), unless thieves are faster.
  bool has_in_ring() const { return has_reserved() || size() != 0; }

  // Anyone. The goroutine that waits behind `others` in the ring, or null. Only a hint: another M
  // may have taken it already.
  G* glance(std::uint64_t others = 0) {
    std::uint64_t first = reserved_first_, reserved = reserved_end_ - first;
    std::uint64_t head = head_.load(base::acquire);
    std::uint64_t tail = tail_.load(base::acquire);  // [run-queue] with push's release: the records
    // Else the loads do not belong together.
    if (reserved <= kReserve && first + reserved <= tail) {
      if (others < reserved) return slot(first + others).load(base::relaxed);
      others -= reserved;
    }
    std::uint64_t waiting = tail - head;
    return others < waiting && waiting <= kSlots ? slot(head + others).load(base::relaxed)
                                                 : nullptr;
  }

  // The slot ahead of the ring. Owner: put, take, take_if. Thieves: peek, steal.
  NextSlot next;

  // Takes the oldest half of a full ring into `out`, reserved goroutines first. Returns how many.
  // 0: thieves made room. The first `from_global` of `out` came from the global queue. Thieves may
  // have emptied the ring behind a reserved goroutine, so that the ring is full of gaps. Taking the
  // reserved goroutine frees it.
  std::size_t take_half(G* (&out)[kHalf], std::size_t* from_global = nullptr) {
    std::size_t taken = 0, old = 0;
    while (has_reserved()) {
      if (reserved_first_ < global_end_) ++old;
      out[taken++] = pop_reserved();
    }
    std::uint64_t head = head_.load(base::acquire);
    std::uint64_t count = policy::to_spill(tail_.load(base::relaxed) - head, kHalf - taken);
    for (std::uint64_t i = 0; i < count; ++i) out[taken + i] = slot(head + i).load(base::relaxed);
    // relaxed: only the owner, which is this thread, reuses the slots
    if (head_.compare_exchange_strong(head, head + count, base::relaxed, base::relaxed)) {
      taken += count;
      if (global_end_ > head) old += global_end_ - head < count ? global_end_ - head : count;
    }
    if (from_global != nullptr) *from_global = old;
    return taken;
  }

  // Owner. Everything in the ring now came from the global queue. take_half() says how many of them
  // it took; they are first in `out`.
  void note_all_from_global() { global_end_ = tail_.load(base::relaxed); }

  // Moves the oldest half, rounded up, of the victim's unreserved ring behind our own tail. The
  // caller gets the youngest of them, to run. Null: there was nothing. `moved` says how many left
  // the victim. Our ring must be empty.
  G* steal_half(RunQueue& victim, std::size_t& moved) {
    std::uint64_t mine = tail_.load(base::relaxed);
    for (;;) {
      std::uint64_t head = victim.head_.load(base::acquire);
      std::uint64_t tail = victim.tail_.load(base::acquire);  // [run-queue] with push's release
      std::uint64_t count = policy::to_steal(tail - head);
      if (tail == head) return nullptr;
      if (count > kHalf) continue;  // head moved between the loads: they do not belong together
      for (std::uint64_t i = 0; i < count; ++i) {
        slot(mine + i).store(victim.slot(head + i).load(base::relaxed), base::relaxed);
      }
      // [run-queue] release: we have read the slots before the owner sees them free
      if (!victim.head_.compare_exchange_strong(head, head + count, base::acq_rel, base::relaxed)) {
        continue;
      }
      G* newest = slot(mine + count - 1).load(base::relaxed);
      tail_.store(mine + count - 1, base::release);
      moved = count;
      return newest;
    }
  }

  // Goroutines in the ring that can be stolen. A guess, unless the owner asks.
  std::size_t size() const {
    std::uint64_t head = head_.load(base::acquire);
    std::uint64_t tail = tail_.load(base::acquire);
    return tail - head <= kSlots ? static_cast<std::size_t>(tail - head) : 0;
  }

  // For the holder of the P: nothing is in it, reserved or not.
  bool is_empty() const { return !has_reserved() && looks_empty(); }

  // True only if at some instant during the call nothing that can be stolen was here. Checks the
  // tail again: between the two looks the owner may move a goroutine from runnext to the
  // ring.
  bool looks_empty() const {
    for (;;) {
      std::uint64_t head = head_.load(base::acquire);
      std::uint64_t tail = tail_.load(base::acquire);
      G* ahead = next.peek();
      if (tail_.load(base::acquire) == tail) return head == tail && ahead == nullptr;
    }
  }

 private:
  friend struct Layout;  // run/layout.h

  base::Atomic<G*>& slot(std::uint64_t index) { return ring_[index % kSlots]; }

  G* pop_reserved() {
    std::uint64_t first = reserved_first_;
    reserved_first_ = first + 1;
    return slot(first).load(base::relaxed);  // relaxed: we wrote it
  }

  // Slots below known_free_ are free. Thieves write the cache line of head_, so the owner reads it
  // only when the ring seems full.
  bool find_room(std::uint64_t tail) {
    // [run-queue] acquire, with the takers' release: slots below head_ are ours again
    known_free_ = has_reserved() ? std::uint64_t{reserved_first_} : head_.load(base::acquire);
    return tail - known_free_ < kSlots;
  }

  bool reserve_some() {
    // [run-queue] acquire: steal_half may refill an empty ring from slot 0, over slots that thieves
    // read
    std::uint64_t head = head_.load(base::acquire);
    for (;;) {
      std::uint64_t waiting = tail_.load(base::relaxed) - head;
      if (waiting == 0) return false;
      std::uint64_t count = policy::to_reserve(waiting, kReserveShare, most_reserved_);
      // The failure needs acquire, and GCC wants success to be no weaker. Nothing to release: only
      // the owner reads these slots and reuses them later. As a read-modify-write this does not
      // break the release sequence of earlier thieves.
      if (head_.compare_exchange_weak(head, head + count, base::acquire, base::acquire)) {
        reserved_first_ = head;
        reserved_end_ = head + count;
        return true;
      }
    }
  }

  std::uint64_t most_reserved_ = kReserve;  // fixed before the queue is used

  // owner only
  std::uint64_t known_free_ = 0;
  std::uint64_t global_end_ = 0;  // goroutines below it came from the global queue

  // The owner writes. Sysmon reads, as a hint.
  base::Relaxed<std::uint64_t> reserved_first_ = 0;
  base::Relaxed<std::uint64_t> reserved_end_ = 0;

  // atomic [run-queue]: the owner writes tail_, the owner and thieves move head_
  alignas(base::kCacheLine) base::Atomic<std::uint64_t> tail_{0};
  alignas(base::kCacheLine) base::Atomic<std::uint64_t> head_{0};
  alignas(base::kCacheLine) base::Atomic<G*> ring_[kSlots];
};

}  // namespace magpie::sched
