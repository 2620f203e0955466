// presence.h: may the records of waiting goroutines be touched?
//
// The end of run() unmaps the stacks of goroutines that still wait, and tells nothing to what they
// wait for, which may live on. A goroutine that runs keeps its run() from ending. A plain thread
// has to come in through the gate [outsider]. It stays inside from the moment it looks at a waiter
// until it has woken it. Hold a Presence briefly: never while blocking.
#pragma once

#include <cstdint>

#include "sched/entry.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

// The run() of the calling goroutine, or of a plain thread that visits, and its options.
inline std::uint64_t current_run() { return runtime->generation; }
inline const Options& current_options() { return runtime->options; }

// The caller's presence.
class Presence {
 public:
  Presence() : entered_(m() == nullptr && begin_visit()) {}
  ~Presence() { end(); }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // The run() whose goroutines stay alive while this lives. 0: there is none.
  std::uint64_t generation() const { return m() != nullptr || entered_ ? runtime->generation : 0; }

  M* m() const { return entry_.m(); }  // null: a plain thread

  // Call this before blocking.
  void end() {
    if (entered_) [[unlikely]] {
      entered_ = false;
      end_visit();
    }
  }

 private:
  Entry entry_;
  bool entered_;
};

// The same for a goroutine that knows its M: there is nothing to do and nothing to undo.
class GoroutinePresence {
 public:
  explicit GoroutinePresence(M* m) : m_(m) {}
  std::uint64_t generation() const { return runtime->generation; }
  M* m() const { return m_; }

 private:
  M* m_;
};

}  // namespace magpie::sched
