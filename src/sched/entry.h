// entry.h: a goroutine, or a plain thread, enters the runtime and leaves it again.
//
// Every public function that touches a P, a queue or a lock of the runtime holds an Entry for as
// long as it does. While a goroutine is outside, sysmon may take its P ([grip]). The next Entry
// gets it one. So any call into the runtime may end on another thread than it began on. Entries
// nest: a timer that fires may start a goroutine or send on a channel. No user code runs inside.
// Inside, nothing may wait for what user code may hold, such as the locks of malloc: a preempted
// thread may hold them, and every P could be stuck inside behind it. So memory is allocated and
// freed, and exceptions are thrown, outside. What must grow inside grows by mmap.
#pragma once

#include "sched/core/m.h"
#include "sched/current.h"

namespace magpie::sched {

// The slow half of entering: sysmon took the M's P, or asks for it. Returns the M, with a P, on
// which the goroutine continues.
[[gnu::noinline]] M* enter_runtime_slow(M* m);

// The goroutine that runs on m enters the runtime from user code. Returns its M.
[[gnu::always_inline]] inline M* enter_runtime(M* m) {
  if (m->grip.enter()) [[likely]]
    return m;
  return enter_runtime_slow(m);
}
// The goroutine goes back to user code.
[[gnu::always_inline]] inline void leave_runtime() { current_m()->grip.leave(); }

// The short way in, for the most frequent calls. It keeps no record of the entry. True: the caller
// has entered and must leave again. False: nothing has changed, and the caller must use an Entry.
[[nodiscard, gnu::always_inline]] inline bool try_enter_runtime(M* m) {
  return m != nullptr && m->grip.try_enter();
}

// A random number from m's P. Inside.
std::uint32_t random_of(M* m);

class Entry {
 public:
  Entry() : m_(current_m()) {
    if (m_ != nullptr) [[likely]]
      enter();
  }
  ~Entry() {
    if (entered_) leave_runtime();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  // The M on which the Entry began. After a switch the goroutine may be on another. Null: a plain
  // thread.
  M* m() const { return m_; }

 private:
  [[gnu::always_inline]] void enter() {
    if (m_->grip.is_inside()) return;  // nested
    entered_ = true;
    m_ = enter_runtime(m_);
  }

  M* m_;
  bool entered_ = false;
};

}  // namespace magpie::sched
