// exceptions.h: the C++ runtime's per-thread exception state, carried with the goroutine.
//
// A thread's state is the stack of exceptions being handled and the count of those in flight. A goroutine may
// block inside `catch` or in a destructor during unwinding, and go on on another thread, so the switch saves
// the state of whoever leaves and restores it when it comes back. The record's layout is fixed by the Itanium
// C++ ABI (2.2.2), which leaves it opaque in <cxxabi.h>.
#pragma once

#include <cxxabi.h>

namespace magpie::context {

struct ExceptionState {
  void* handled = nullptr;     // innermost exception being handled
  unsigned int in_flight = 0;  // thrown, not yet caught

  bool any() const { return handled != nullptr || in_flight != 0; }
};

// The calling thread's state. Fetch once per thread: every thread has its own.
inline ExceptionState* thread_exception_state() {
  return reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
}

}  // namespace magpie::context
