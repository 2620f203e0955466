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

#include <utility>

#include "sched/core/m.h"
#include "sched/core/p.h"
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

// Whether a select on m's P begins with a guess. Inside. See chan/select.cc.
inline bool guesses_in_select(M* m) { return m->p->guesses_in_select; }
inline void set_guesses_in_select(M* m, bool guesses) { m->p->guesses_in_select = guesses; }

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

// For a call that gives something back, such as a lock. The goroutine enters without a P if sysmon
// took its P, and gives the thing back all the same. Only then it waits for a P, and may be dropped
// meanwhile. With an Entry it would be dropped with the lock held, though it was on its way out.
class LateEntry {
 public:
  LateEntry() {
    M* m = current_m();
    if (m == nullptr || m->grip.is_inside()) return;
    entered_ = true;
    if (!m->grip.enter()) (void)m->grip.keep();
  }
  ~LateEntry() {
    if (!entered_) return;
    get_p();
    leave_runtime();
  }
  LateEntry(const LateEntry&) = delete;
  LateEntry& operator=(const LateEntry&) = delete;

  // Call this without a lock, when nothing is held any more, and before a goroutine is woken. A
  // plain thread that was taken off a list must have been woken by then: if the caller is dropped
  // here, nobody else does it. A goroutine is dropped with the caller.
  void get_p() {
    M* m = current_m();
    if (m != nullptr && m->grip.is_taken()) [[unlikely]]
      (void)enter_runtime_slow(m);
  }

  // Leaves now, perhaps without a P. The caller gives something back by its next call.
  void leave() {
    if (std::exchange(entered_, false)) leave_runtime();
  }

 private:
  bool entered_ = false;
};

}  // namespace magpie::sched
