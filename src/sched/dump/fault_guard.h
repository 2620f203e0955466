// fault_guard.h: reads what may be gone. A dump looks at stacks and records that other threads
// change and unmap meanwhile. If that faults, the handler of SIGSEGV (threads/overflow.cc) jumps
// back here, and the dump does without.
#pragma once

#include <setjmp.h>
#include <signal.h>

namespace magpie::sched {

// For functions that read what other threads write at the same time, and check it afterwards.
#ifdef __clang__
#define MAGPIE_READS_RACILY \
  gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread, clang::no_sanitize("undefined")
#else
#define MAGPIE_READS_RACILY \
  gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread, gnu::no_sanitize_undefined
#endif

// The calling thread's; null: faults are not expected. Nothing between setting and clearing it
// enters the runtime, so the thread stays the same.
extern "C" __thread sigjmp_buf* magpie_fault_guard
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Calls f(argument). False: it faulted, and what it did is half done. Guards do not nest: the inner
// one would end the outer one.
bool survives(void (*f)(void* argument), void* argument);

// For the handler, with its third argument. Does not return if the thread expects faults.
void jump_back_if_guarded(const void* context);

// While one lives, the handler of SIGSEGV and SIGBUS is the runtime's, whatever the program
// installed.
class FaultHandling {
 public:
  FaultHandling() { begin(); }
  ~FaultHandling() { end(); }
  FaultHandling(const FaultHandling&) = delete;
  FaultHandling& operator=(const FaultHandling&) = delete;

 private:
  void begin();  // both: threads/overflow.cc
  void end();

  struct sigaction segv_, bus_;
};

}  // namespace magpie::sched
