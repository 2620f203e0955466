// wait_object.h: what a parked goroutine waits for. Found when somebody asks, on its stack.
//
// park() leaves the low 16 bits of its argument in the goroutine's record. The argument lies on the
// goroutine's stack, a little above where its registers are saved. So these bits and saved_sp give
// the whole address. There stands
//     the object itself           if the wait is at one channel
//     a pointer to a Waiter       otherwise: it points into the stack. The Waiter knows the object
//
//   reason                          object
//   Mutex, RWMutex, CondVar, Once,  it, by its address
//     Semaphore, WaitGroup
//   channel                         its Channel
//   select                          a SelectChannels
//   join                            the G
//   IO                              an int: the descriptor's number
//   sleep, nil channel              null
#pragma once

#include <cstddef>
#include <cstdint>

#include <magpie/detail/select_core.h>

namespace magpie::sched {

struct G;

// On the stack of a select that waits.
struct SelectChannels {
  std::size_t count;
  detail::SelectCase* const* cases;
};

// For a goroutine that waits, or did a moment ago: the stack may change meanwhile, and may be gone.
// So the caller must survive faults (dump/fault_guard.h). Null: none, or it is not certain.
const void* wait_object_of(const G& g);

}  // namespace magpie::sched
