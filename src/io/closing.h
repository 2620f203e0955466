// closing.h: a descriptor is closed while others use it. Its number must not become another file's
// before the last user has finished.
//
// Protocol  [closing]
//
//   The word counts the users, goroutines and plain threads apart, and holds two bits. CLOSED: no
//   new users. GONE: the number was given back.
//   user:    begin_use(): one more, unless CLOSED.  ...  end_use(): one less; the last user under
//            CLOSED gives the number back
//   closer:  close(): sets CLOSED, once. Without users it gives the number back itself. Then it
//            wakes the users that sleep
//   owner:   before its memory goes: waits for GONE, after which nobody touches it
//   later:   the first user in another run() calls forget_goroutines(), which removes the
//            goroutines of a run() that has ended; if they were the last users under CLOSED, it
//            gives the number back
//
// Once      Under CLOSED users only become fewer. So exactly one step finds CLOSED and no users:
//           the closer's, a user's, or the one that forgets the last users.
// Orders    [closing] end_use() releases what the user did. The step that gives the number back
//           acquires it. is_gone() acquires what that step did.
// Proof     tests/model/readiness_model.cc, with [readiness]: sleeping users are woken, and finish
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::io {

class Closing {
 public:
  enum class User : std::uint64_t { goroutine = 4, thread = std::uint64_t{1} << 32 };

  // False: closed.
  [[nodiscard]] bool begin_use(User user) {
    std::uint64_t now = word_.load(base::relaxed);
    do {
      if ((now & kClosed) != 0) return false;
    } while (!word_.compare_exchange_weak(now, now + one(user), base::acquire, base::relaxed));
    return true;
  }
  // True: the caller gives the number back, then calls note_gone().
  [[nodiscard]] bool end_use(User user) {
    return word_.fetch_sub(one(user), base::acq_rel) == (kClosed | one(user));
  }

  enum class Close { by_caller, by_last_user, already };
  [[nodiscard]] Close close() {
    std::uint64_t before = word_.fetch_or(kClosed, base::acq_rel);
    if ((before & kClosed) != 0) return Close::already;
    return before == 0 ? Close::by_caller : Close::by_last_user;
  }
  void note_gone() { word_.fetch_or(kGone, base::release); }

  // Hint for users inside: [readiness] orders it.
  bool is_closed() const { return (word_.load(base::relaxed) & kClosed) != 0; }
  bool is_gone() const { return (word_.load(base::acquire) & kGone) != 0; }

  // Goroutines inside are of a run() that has ended, and will never leave. No goroutine uses it
  // now. were_last: the caller gives the number back, then calls note_gone().
  enum class Forgotten { were_last, were_not };
  [[nodiscard]] Forgotten forget_goroutines() {
    constexpr std::uint64_t kGoroutines =
        (static_cast<std::uint64_t>(User::thread) - 1) & ~(kClosed | kGone);
    std::uint64_t before = word_.fetch_and(~kGoroutines, base::acq_rel);
    bool were_last = (before & kGoroutines) != 0 && (before & ~kGoroutines) == kClosed;
    return were_last ? Forgotten::were_last : Forgotten::were_not;
  }

 private:
  static constexpr std::uint64_t kClosed = 1, kGone = 2;
  static constexpr std::uint64_t one(User user) { return static_cast<std::uint64_t>(user); }

  base::Atomic<std::uint64_t> word_{0};  // atomic [closing]
};

}  // namespace magpie::io
