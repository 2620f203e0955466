// channel.h: a channel: a lock, a ring of elements, and two lists of waiters. [chan]: chan_state.h.
//
// Hand-off  A waiting partner is served directly: the value moves between the two stacks, and the
//           ring is not touched. Only a receiver at a full ring takes the oldest element, and puts
//           the value of the longest waiting sender in its place.
// Wake-ups  The locked functions return the partner. The caller wakes it after the unlock. User
// code None runs under the lock, or inside the runtime at all. Elements are moved there as bytes,
//           or by functions that are known to be harmless (magpie/plain_move.h). All others are
//           pointers to boxes (magpie/detail/element.h).
// Lifetime  Channels come from memory that stays theirs (channel_pool.h), as [quick-lock] demands.
//           A goroutine that parks releases the lock after it can be woken, so it may have dropped
//           the last handle meanwhile.
#pragma once

#include <cstddef>
#include <cstring>

#include <magpie/detail/chan_core.h>

#include "base/quick_lock.h"
#include "chan/chan_state.h"
#include "chan/select_word.h"
#include "sched/wait_list.h"
#include "sched/waiter.h"

namespace magpie::chan {

using detail::ChanResult;
using sched::GoroutinePresence;
using sched::Presence;

// A wait at one channel. Lives on the waiter's stack.
struct ChanWaiter : sched::WaitRecord {
  sched::Waiter* who;
  void* slot;           // a sender's value, or where a receiver wants it
  SelectWord* select;   // null: waits here only
  std::uint32_t index;  // of the case
  ChanResult result;    // done or closed; the waker writes it under the channel's lock
};

// What an operation did, and whom it owes a wake-up after the unlock.
struct [[nodiscard]] Step {
  ChanResult result;
  ChanWaiter* partner = nullptr;

  ChanResult finish() const {
    if (partner != nullptr) partner->who->wake();
    return result;
  }
};

struct alignas(base::kCacheLine) Channel : detail::ChanCore {
  // fixed while open
  const detail::ElementKind* kind = nullptr;
  std::byte* ring = nullptr;  // null: unbuffered, or elements without size

  // What every operation writes is in the first cache line. The lists change only when somebody
  // waits: a sender and a receiver on two cores that need not wait move one line, not two.
  base::UncheckedQuickLock lock;  // [quick-lock]

  // guarded by lock
  std::size_t receive_at = 0;  // bytes into the ring
  std::size_t send_at = 0;
  ChanState state;  // [chan]
  sched::WaitList receivers, senders;

  // fixed while open, read by receivers that are about to wait
  detail::ChanWatch* watch = nullptr;  // owned; null: receivers wait without

  Channel* next_free = nullptr;  // the pool's

  // Sends without waiting. Refused: the caller may get on the list of senders.
  template <class Here>
  [[gnu::always_inline]] Step send_locked(void* value, const Here& presence) {
    if (state.closed()) return {ChanResult::closed};
    if (ChanWaiter* receiver = take_waiter(receivers, presence)) {
      move(receiver->slot, value);
      receiver->result = ChanResult::done;
      return {ChanResult::done, receiver};
    }
    if (state.count() == state.capacity()) return {ChanResult::refused};
    push(value);
    state.set_count(state.count() + 1);
    return {ChanResult::done};
  }

  template <class Here>
  [[gnu::always_inline]] Step receive_locked(void* slot, const Here& presence) {
    if (state.count() != 0) {
      pop(slot);
      ChanWaiter* sender = take_waiter(senders, presence);
      if (sender == nullptr) {
        state.set_count(state.count() - 1);
        return {ChanResult::done};
      }
      push(sender->slot);
      sender->result = ChanResult::done;
      return {ChanResult::done, sender};
    }
    if (ChanWaiter* sender = take_waiter(senders, presence)) {
      move(slot, sender->slot);
      sender->result = ChanResult::done;
      return {ChanResult::done, sender};
    }
    return {state.closed() ? ChanResult::closed : ChanResult::refused};
  }

  // Whether send_locked or receive_locked would do something. A select that waits may still be lost
  // to another channel.
  bool can_send_locked(const Presence& presence) {
    return state.closed() || state.count() < state.capacity() || has_waiter(receivers, presence);
  }
  bool can_receive_locked(const Presence& presence) {
    return state.count() != 0 || state.closed() || has_waiter(senders, presence);
  }

  // Takes all waiters off the list that nobody has won yet, linked by next, with the result closed.
  ChanWaiter* take_all(sched::WaitList& list, const Presence& presence, ChanWaiter* before) {
    while (ChanWaiter* waiter = take_waiter(list, presence)) {
      waiter->result = ChanResult::closed;
      waiter->next = before;
      before = waiter;
    }
    return before;
  }

  // How many bytes an element takes in the ring.
  std::size_t step() const { return kind->size; }

  void move(void* to, void* from) const {
    if (kind->move != nullptr) {
      kind->move(to, from);
    } else if (kind->size == sizeof(std::uint64_t)) {
      std::memcpy(to, from, sizeof(std::uint64_t));  // the usual size: no call
    } else if (kind->size != 0) {
      std::memcpy(to, from, kind->size);
    }
  }

 private:
  // Takes the longest waiter that can still be won off the list. Null: there is none.
  template <class Here>
  static ChanWaiter* take_waiter(sched::WaitList& list, const Here& presence) {
    while (sched::WaitRecord* record = list.take_first(presence)) {
      auto* waiter = static_cast<ChanWaiter*>(record);
      if (waiter->select == nullptr || waiter->select->try_win(waiter->index)) return waiter;
    }
    return nullptr;
  }

  static bool has_waiter(sched::WaitList& list, const Presence& presence) {
    while (sched::WaitRecord* record = list.first(presence)) {
      auto* waiter = static_cast<ChanWaiter*>(record);
      if (waiter->select == nullptr || waiter->select->is_open()) return true;
      list.unlink(*waiter);
    }
    return false;
  }

  void push(void* value) {
    if (ring == nullptr) return;
    move(ring + send_at, value);
    send_at = after(send_at);
  }
  void pop(void* slot) {
    if (ring == nullptr) return;
    std::byte* element = ring + receive_at;
    move(slot, element);
    if (kind->move != nullptr && kind->destroy != nullptr) kind->destroy(element);
    receive_at = after(receive_at);
  }
  std::size_t after(std::size_t at) const {
    at += step();
    return at == state.capacity() * step() ? 0 : at;
  }
};

inline Channel* channel_of(detail::ChanCore* core) { return static_cast<Channel*>(core); }
// Waits as the limit says, and for as long as the channel's watch wants; see limited.cc.
ChanResult receive_watched(Channel& channel, void* slot, const detail::WaitLimit& limit);

inline const Channel* channel_of(const detail::ChanCore* core) {
  return static_cast<const Channel*>(core);
}

// The commit step of a wait at one channel. `object` is the waiter's object_word().
bool unlock_in_commit(sched::M*, sched::G*, void* object);

}  // namespace magpie::chan
