// wait_list.h: waiters for the same thing, first come, first served, linked through records on
// their stacks.
//
// A list may outlive the run() whose goroutines wait on it. Then their stacks are gone, and the
// links with them. So the list knows which run() its goroutines belong to. A caller that comes with
// another run() (Presence) makes the list forget all goroutines, without touching a single record.
// Plain threads are still there: they are linked among themselves too, and the list is rebuilt from
// them.
//
//   goroutine records   next, previous
//   thread records      next, previous, and next_thread, previous_thread
//
// Invariant  Goroutines on the list belong to generation_.
// Era        Each forgetting begins a new era. A record of another era than the list's has been
//            forgotten, and taking it off does nothing. That matters to a waiter on several lists,
//            which comes back to take off the rest.
//
// Protocol  [wait-list]
//   who comes, leaves or wakes:  under the owner's lock, with its presence (presence.h)
//   anyone, without the lock:    looks_empty()
// In a row  The lock orders all steps. What is left to agree on is between runs. So the model
//           explores sequences of steps, not interleavings.
// Orders    [wait-list] changes of first_ release, looks_empty() acquires.
// Proof     tests/model/wait_list_model.cc
//
// All bits zero is an empty list, so that public types can keep one without knowing what it is
// (magpie/detail/wait_storage.h).
#pragma once

#include <cstdint>

#include "base/atomic.h"
#ifndef MAGPIE_MODEL
#include "sched/presence.h"
#endif

namespace magpie::sched {

struct WaitRecord {
  WaitRecord* next;
  WaitRecord* previous;
  WaitRecord* next_thread;      // thread records only
  WaitRecord* previous_thread;  //
  std::uint64_t era = 0;        // 0: not on a list
  bool is_thread;
};

class WaitList {
 public:
  // Without the lock: outdated by the time it is used. Acquires what was written before the list
  // became empty.
  bool looks_empty() const { return first_.load(base::acquire) == nullptr; }

  // The record of the longest wait; null: nobody waits. Here: Presence or GoroutinePresence.
  template <class Here>
  WaitRecord* first(const Here& presence) {
    WaitRecord* record = first_.load(base::relaxed);  // relaxed: the lock is held
    if (record == nullptr) return nullptr;
    if (generation_ != presence.generation()) [[unlikely]] {
      forget_goroutines(presence.generation());
      record = first_.load(base::relaxed);
    }
    return record;
  }

  // False for a record that was forgotten.
  template <class Here>
  bool holds(const WaitRecord& record, const Here& presence) {
    first(presence);
    return is_of_now(record);
  }

  template <class Here>
  void push(WaitRecord& record, const Here& presence) {
    WaitRecord* last = first(presence) == nullptr ? nullptr : last_;
    record.next = nullptr;
    record.previous = last;
    record.era = era();
    record.is_thread = presence.m() == nullptr;
    if (last != nullptr) {
      last->next = &record;
    } else {
      generation_ = presence.generation();
      first_.store(&record, base::release);  // with looks_empty()
    }
    last_ = &record;
    if (record.is_thread) [[unlikely]]
      push_thread(record);
  }

  // Puts the record ahead of all others, for a waiter that has been first before.
  template <class Here>
  void push_front(WaitRecord& record, const Here& presence) {
    WaitRecord* second = first(presence);
    if (second == nullptr) return push(record, presence);
    record.next = second;
    record.previous = nullptr;
    record.era = era();
    record.is_thread = presence.m() == nullptr;
    second->previous = &record;
    first_.store(&record, base::release);  // with looks_empty()
    if (record.is_thread) push_thread_front(record);
  }

  // Takes off the record of the longest wait; null: nobody waits.
  template <class Here>
  WaitRecord* take_first(const Here& presence) {
    WaitRecord* record = first(presence);
    if (record == nullptr) return nullptr;
    record->era = 0;
    WaitRecord* second = record->next;
    first_.store(second, base::release);  // with looks_empty()
    (second != nullptr ? second->previous : last_) = nullptr;
    if (record->is_thread) [[unlikely]]
      unlink_thread(*record);
    return record;
  }

  // Takes the record off, wherever it is. Does nothing if it is not on the list, or was forgotten.
  // Its neighbours may be of an earlier run().
  template <class Here>
  void unlink(WaitRecord& record, const Here& presence) {
    first(presence);
    unlink(record);
  }

  // The same right after first(), with the same presence.
  void unlink(WaitRecord& record) {
    if (!is_of_now(record)) return;
    record.era = 0;
    if (record.previous != nullptr) {
      record.previous->next = record.next;
    } else {
      first_.store(record.next, base::release);  // with looks_empty()
    }
    if (record.next != nullptr) {
      record.next->previous = record.previous;
    } else {
      last_ = record.previous;
    }
    if (record.is_thread) [[unlikely]]
      unlink_thread(record);
  }

  // The owner goes away, or gets a new owner. No live goroutine or thread waits.
  void reset() {
    first_.store(nullptr, base::relaxed);  // relaxed: the owner is alone
    last_ = first_thread_ = last_thread_ = nullptr;
    ++forgettings_;
  }

 private:
  std::uint64_t era() const { return forgettings_ + 1; }
  bool is_of_now(const WaitRecord& record) const { return record.era == era(); }

  void push_thread(WaitRecord& record) {
    record.next_thread = nullptr;
    record.previous_thread = last_thread_;
    (last_thread_ != nullptr ? last_thread_->next_thread : first_thread_) = &record;
    last_thread_ = &record;
  }

  void push_thread_front(WaitRecord& record) {
    record.next_thread = first_thread_;
    record.previous_thread = nullptr;
    (first_thread_ != nullptr ? first_thread_->previous_thread : last_thread_) = &record;
    first_thread_ = &record;
  }

  void unlink_thread(WaitRecord& record) {
    (record.previous_thread != nullptr ? record.previous_thread->next_thread : first_thread_) =
        record.next_thread;
    (record.next_thread != nullptr ? record.next_thread->previous_thread : last_thread_) =
        record.previous_thread;
  }

  [[gnu::noinline]] void forget_goroutines(std::uint64_t generation) {
    generation_ = generation;
    ++forgettings_;
    WaitRecord* before = nullptr;
    for (WaitRecord* thread = first_thread_; thread != nullptr; thread = thread->next_thread) {
      thread->era = era();
      thread->previous = before;
      thread->next = thread->next_thread;
      before = thread;
    }
    last_ = last_thread_;
    first_.store(first_thread_, base::release);  // with looks_empty()
  }

  base::Atomic<WaitRecord*> first_{nullptr};  // atomic [wait-list]
  // guarded by the owner's lock
  WaitRecord* last_ = nullptr;
  std::uint64_t generation_ = 0;
  std::uint64_t forgettings_ = 0;
  WaitRecord* first_thread_ = nullptr;
  WaitRecord* last_thread_ = nullptr;
};

}  // namespace magpie::sched
