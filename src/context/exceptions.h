// exceptions.h: the C++ runtime's per-thread exception state, carried with the goroutine.
//
// A thread's state is the stack of exceptions being handled and the count of exceptions in flight.
// A goroutine may block inside `catch`, or in a destructor during unwinding, and continue on
// another thread. So the switch saves the state of the goroutine that leaves, and restores it when
// the goroutine comes back. The Itanium C++ ABI (2.2.2) fixes the record's layout, and leaves it
// opaque in <cxxabi.h>.
#pragma once

#include <cxxabi.h>

#ifdef _LIBCPPABI_VERSION
// libc++abi has the function and does not declare it.
namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals();
}  // namespace __cxxabiv1
#endif

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
