// chan_state.h: what a channel holds, and what can be seen of it without its lock.
//
// Protocol  [chan]
//   Under the lock: the count of buffered elements, closed, and the waiters. A sender and a
//   receiver never wait at the same time. Receivers wait only at an empty buffer, senders only at a
//   full one. Without the lock an operation that must not wait may be refused:
//     send:     full?   then: not closed?   -> refused
//     receive:  empty?  then: not closed?   -> refused
//     both:     closed, and for receive: then empty?  -> closed
//   An unbuffered channel is full, and empty, if no partner waits.
//
// Why so    "Refused" has to be true at one moment. A channel that is not closed at the second look
//           was not closed at the first one, so at the first look it was full and open. The other
//           way round would be wrong: open at the first look; then closed, which sends the waiting
//           receivers away; then "full", because nobody waits. But it never was full and open. The
//           same holds for a buffer that is drained after the close. Closed and empty is for ever:
//           nothing can be sent any more.
// Orders    [chan] count, closed and the lists are written with release, and read without the lock
//           with acquire. So a reader that sees what close() did to a list, or what a later
//           receiver did to the count, also sees closed.
// Proof     tests/model/chan_model.cc
#pragma once

#include <cstddef>

#include "base/atomic.h"

namespace magpie::chan {

class ChanState {
 public:
  // Before it is shared.
  void open(std::size_t capacity) {
    capacity_ = capacity;
    count_.store(0, base::relaxed);
    closed_.store(false, base::relaxed);
  }

  std::size_t capacity() const { return capacity_; }

  // Under the lock; relaxed, for it orders them.
  std::size_t count() const { return count_.load(base::relaxed); }
  bool closed() const { return closed_.load(base::relaxed); }
  void set_count(std::size_t count) {
    count_.store(count, base::release);
  }  // [chan] with the looks below
  void close() {
    closed_.store(true, base::release);
  }  // [chan] with the looks below; before the lists are emptied

  // Without the lock.
  template <class WaitList>
  bool refuses_send(const WaitList& receivers) const {
    bool full = capacity_ == 0 ? receivers.looks_empty() : count_.load(base::acquire) == capacity_;
    return full && !closed_.load(base::acquire);
  }
  template <class WaitList>
  bool refuses_receive(const WaitList& senders) const {
    bool empty = capacity_ == 0 ? senders.looks_empty() : count_.load(base::acquire) == 0;
    return empty && !closed_.load(base::acquire);
  }
  bool is_closed() const { return closed_.load(base::acquire); }
  // acquire first: the count can only fall after that
  bool is_drained() const { return closed_.load(base::acquire) && count_.load(base::acquire) == 0; }
  std::size_t size() const { return count_.load(base::acquire); }

 private:
  std::size_t capacity_ = 0;            // fixed while open
  base::Atomic<std::size_t> count_{0};  // atomic [chan]: written under the lock
  base::Atomic<bool> closed_{false};    // atomic [chan]: written under the lock, once
};

}  // namespace magpie::chan
