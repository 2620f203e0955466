// interruption.h: makes the thread that blocks in the poller return, once for many that ask.
//
// Protocol  [interrupt]
//
//   interrupter:  writes what it is about;  asked = true                                     (ask)
//                 was it false?  -> writes to the event, a descriptor
//   blocker:      the event is readable:  reads it empty;  asked = false                 (drained)
//                 looks at what it is about
//
// No loss   While `asked` is true, one of three holds: the event is readable, or is about to be, or
//           is being read by a blocker that looks afterwards. An interrupter that finds it true
//           leaves the matter to that. `asked` is false only after the event was empty and before
//           an interrupter writes. In the other order, asked = false and then the read, a write in
//           between would be read away. `asked` would stay true with nothing to read, and no
//           blocker would ever be interrupted again.
// One       The thread that has the role ([poll-role]) and blocks reads the event. One at a time
//           does. A thread that asks the poller without blocking leaves the event alone.
// Orders    [interrupt] `asked` is exchanged by acq_rel, and cleared by an exchange too. So the
//           blocker also sees what the interrupters wrote that found it true.
// Proof     tests/model/poller_model.cc
#pragma once

#include "base/atomic.h"

namespace magpie::poll {

class Interruption {
 public:
  // True: the caller writes to the event.
  [[nodiscard]] bool ask() { return !asked_.exchange(true, base::acq_rel); }
  // The blocker calls this once the event is empty and before it looks.
  void drained() { asked_.exchange(false, base::acq_rel); }

 private:
  base::Atomic<bool> asked_{false};  // atomic [interrupt]
};

}  // namespace magpie::poll
