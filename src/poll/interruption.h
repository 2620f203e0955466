// interruption.h: whoever blocks in the poller is made to return, once for many who ask for it.
//
// Protocol  [interrupt]
//
//   interrupter:  says what it is about;  asked = true                                     (ask)
//                 was it false?  -> writes to the event, a descriptor
//   who blocks:   the event is readable:  reads it empty;  asked = false               (drained)
//                 looks what it is about
//
// No loss   While `asked` is true the event is readable, or is about to be, or is being read by one
//           who looks afterwards. One who finds it true leaves it to those. It is false only after
//           the event was empty and before anybody writes. In the other order, asked = false and
//           then the read, a write in between would be read away, and `asked` stay true with
//           nothing to read: nobody would ever be interrupted again.
// One       reads at a time: who has the role ([poll-role]) and blocks. Who asks without blocking
//           leaves it alone.
// Orders    [interrupt] `asked` is exchanged by acq_rel, and cleared by an exchange too: who blocks
//           sees what those were about that found it true.
// Proof     tests/model/poller_model.cc
#pragma once

#include "base/atomic.h"

namespace magpie::poll {

class Interruption {
 public:
  // True: the caller writes to the event.
  [[nodiscard]] bool ask() { return !asked_.exchange(true, base::acq_rel); }
  // By the one who blocks, once the event is empty and before it looks.
  void drained() { asked_.exchange(false, base::acq_rel); }

 private:
  base::Atomic<bool> asked_{false};  // atomic [interrupt]
};

}  // namespace magpie::poll
