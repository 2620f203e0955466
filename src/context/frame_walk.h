// frame_walk.h: which functions a stack is in. By the compiler's own tables and unwinder (libgcc),
// which neither allocates nor locks (glibc 2.35, gcc 12, or newer).
//
// walk_from() unwinds a stack that no thread is on. A small piece of assembly calls the unwinder
// and has unwind information of its own: it says that its caller's registers are in a Registers
// record. So the unwinder continues there, as it continues behind a signal frame.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace magpie::context {

struct Registers {
  std::uintptr_t pc;
  std::uintptr_t sp;
  std::uintptr_t frame;       // rbp, x29
  std::uintptr_t others[10];  // x86-64: rbx, r12 to r15. AArch64: x19 to x28
};

// Of a stack that swap() left; `saved` is what swap() stored.
Registers registers_of(const void* saved);
// Of a thread that a signal interrupted.
Registers registers_of(const ucontext_t& interrupted);

// Told of each frame, innermost first: where it continues, and the stack pointer it then has.
// False: stop.
using FrameVisitor = bool (*)(void* argument, std::uintptr_t pc, std::uintptr_t sp);

// The stack may change meanwhile: then frames may be wrong, and the unwinder may fault.
void walk_from(const Registers& registers, FrameVisitor visit, void* argument);

// The calling thread's own stack, from the caller's frame on. In a signal handler: through the
// signal frame, into what was interrupted.
void walk_here(FrameVisitor visit, void* argument);

// Where the call into a frame put its return address, given its stack pointer; 0: that differs from
// function to function.
std::uintptr_t return_slot_of(std::uintptr_t sp);

}  // namespace magpie::context
