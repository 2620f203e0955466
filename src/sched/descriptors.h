// descriptors.h: the door to the poller: descriptors that goroutines and plain threads wait for.
// Inside the runtime, or within a visit.
#pragma once

#include "sched/rest/network.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

// A slot that events of fd are told to.
inline Network::Attached attach_descriptor(int fd) { return runtime->network.attach(fd); }
inline void detach_descriptor(int fd, poll::Slot* slot) { runtime->network.detach(fd, slot); }

// A plain thread waits for a descriptor: some M, or sysmon, has to ask for events.
inline void want_events() { runtime->network.want_events(); }

}  // namespace magpie::sched
