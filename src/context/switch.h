// switch.h: leave one stack, continue on another.
//
// A suspended stack is one pointer, its saved stack pointer. Above it lie, from low to high
// addresses: the floating-point control words, the address to continue at, and the frame pointer.
// All other registers are declared clobbered, so the compiler keeps on the stack exactly those that
// are live at the switch.
//
//   swap(&mine, other, value)   suspends the caller in `mine` and resumes `other`. Returns when
//                               another swap resumes `mine`, with the value that it passed.
//   prepare(top, entry)         makes a stack that calls entry(value) when first resumed; entry
//                               never returns.
//
// Belongs to the goroutine, saved and restored here: callee-saved registers, the stack pointer, the
// rounding and exception masks (MXCSR, x87 control word; FPCR on AArch64). Belongs to the thread:
// signal mask, errno, thread_locals, floating-point status flags. Unwinders: the file is compiled
// with frame pointers. So the frame of swap's caller is described correctly at every instruction of
// the switch. entry's frame says that it has no caller. A function that calls swap must be marked
// MAGPIE_SWITCHES. Otherwise the compiler might inline it into code that holds values in registers
// we do not list (AVX-512), or might analyse which registers it leaves alone: the switch would
// corrupt them.
#pragma once

#include <unwind.h>

#include <cstddef>
#include <cstdint>

#if defined(__clang__)
#define MAGPIE_SWITCHES gnu::noinline
#else
#define MAGPIE_SWITCHES gnu::noinline, gnu::noipa
#endif

namespace magpie::context {

using Entry = void (*)(void* value);

// Writes the first frame below `top` (16-aligned) and returns the stack pointer to resume.
void* prepare(void* top, Entry entry);

// An exception that nothing on a prepared stack catches reaches the first frame. The first frame is
// asked twice: while the frames of the thrower are still there, whether it catches, and when all of
// them are gone, to take the exception.
struct FirstFrame {
  // Runs on top of the thrower's frames. False: nothing catches it, and the C++ runtime calls
  // std::terminate() there.
  bool (*catches)(_Unwind_Exception* exception);
  // pthread_exit() or pthread_cancel() unwinds the stack.
  void (*refuse_to_unwind)();
  // All frames are gone. If this throws itself, the program terminates.
  void (*take)(_Unwind_Exception* exception);
  // Then the stack continues here, as if it had just been entered. Never returns.
  void (*go_on)();
};
// For all prepared stacks. Call this before the first of them is resumed.
void set_first_frame(const FirstFrame& hooks);

#if defined(__x86_64__)

[[gnu::always_inline]] inline void* swap(void** save, void* resume, void* value) {
  // No red zone is skipped: the files that use this are compiled without one, see
  // cmake/rooms.cmake. MXCSR is compared without its six status flags, which are results, not
  // control. It is loaded only when it differs. The x87 control word is read only when one side's
  // MXCSR is not the default: fesetround and the like change both, and reading it costs as much as
  // the rest of the switch.
  asm volatile(
      "pushq %%rbp\n\t"
      "leaq 2f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "pushq $0x037F\n\t"  // the x87 default, unless found otherwise below
      "stmxcsr 4(%%rsp)\n\t"
      "movq %%rsp, (%[save])\n\t"
      "movl 4(%%rsp), %%eax\n\t"
      "movl 4(%[resume]), %%ecx\n\t"
      "xorl $0x1F80, %%eax\n\t"
      "xorl $0x1F80, %%ecx\n\t"
      "orl %%ecx, %%eax\n\t"
      "testl $0xFFC0, %%eax\n\t"
      "jne 3f\n\t"
      "1:\n\t"
      "leaq 8(%[resume]), %%rsp\n\t"
      "popq %%rax\n\t"
      "popq %%rbp\n\t"
      "jmpq *%%rax\n\t"
      "3:\n\t"  // one side is not at the default: save both words of ours, load both of the other
      "fnstcw (%%rsp)\n\t"
      "ldmxcsr 4(%[resume])\n\t"
      "fldcw (%[resume])\n\t"
      "jmp 1b\n\t"
      "2:\n\t"
      : "+D"(value), [resume] "+d"(resume)
      : [save] "S"(save)
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15", "cc", "memory");
  return value;
}

#elif defined(__aarch64__)

// x18 is a scratch register, unless the platform has reserved it. Then no code keeps anything
// there.
#if defined(__ANDROID__) || defined(__APPLE__) || defined(__Fuchsia__)
#define MAGPIE_X18
#elif defined(__has_feature)
#if __has_feature(shadow_call_stack)
#define MAGPIE_X18
#endif
#endif
#if !defined(MAGPIE_X18)
#define MAGPIE_X18 "x18",
#endif

[[gnu::always_inline]] inline void* swap(void** save, void* resume, void* value) {
  register void* passed asm("x0") = value;
  register void** save_at asm("x1") = save;
  register void* resume_from asm("x2") = resume;
  asm volatile(
      "mrs x3, fpcr\n\t"
      "adr x4, 1f\n\t"
      "stp x3, x4, [sp, #-32]!\n\t"
      "str x29, [sp, #16]\n\t"
      "mov x5, sp\n\t"
      "str x5, [x1]\n\t"
      "mov sp, x2\n\t"
      "ldr x29, [sp, #16]\n\t"
      "ldp x6, x4, [sp], #32\n\t"
      "cmp x6, x3\n\t"
      "b.eq 0f\n\t"
      "msr fpcr, x6\n\t"
      "0:\n\t"
      "br x4\n\t"
      "1:\n\t"
      "hint #36\n\t"  // bti j, where branch targets are marked (-mbranch-protection); else a nop
      : "+r"(passed), "+r"(save_at), "+r"(resume_from)
      :
      : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", MAGPIE_X18 "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
        "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
        "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
        "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
  return passed;
}

#else
#error "magpie: no context switch for this processor (x86-64 and AArch64 have one)"
#endif

}  // namespace magpie::context
