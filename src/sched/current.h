// current.h: which M is this thread?
//
// A goroutine may come out of any switch on another thread. Compilers compute the address of a
// thread_local once and keep it, so an ordinary one may name the thread before the switch.
// Therefore assembly reads the variable. It computes address and value anew each time, and the
// compiler may neither merge it nor move it across another one. The TLS model is initial-exec: in
// an executable the linker turns the table look-up into a constant.
#pragma once

namespace magpie::sched {

struct M;
struct G;

extern "C" __thread M* magpie_current_m
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Null on a plain thread.
inline M* current_m() {
  M* m;
#if defined(__x86_64__)
  asm volatile(
      "movq magpie_current_m@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(m)
      :
      : "memory");
#elif defined(__aarch64__)
  M** address;
  asm volatile(
      "adrp %0, :gottprel:magpie_current_m\n\t"
      "ldr %0, [%0, :gottprel_lo12:magpie_current_m]\n\t"
      "mrs %1, tpidr_el0\n\t"
      "ldr %1, [%1, %0]"
      : "=&r"(address), "=&r"(m)
      :
      : "memory");
#endif
  return m;
}

// Writes the calling thread's variable. Only while no goroutine runs on it.
void set_current_m(M* m);

}  // namespace magpie::sched
