#include "context/frame_walk.h"

#include <unwind.h>

#include <cstddef>

// magpie_context_walk(registers, trace, argument) calls _Unwind_Backtrace(trace, argument). The
// escapes are DWARF: "the CFA is the word at 8(record)", "the return address is at 0(record)", and
// so on; the record's address is in a register that calls preserve.
#if defined(__x86_64__)
asm(R"(
  .text
  .hidden magpie_context_walk
  .globl magpie_context_walk
  .type magpie_context_walk, @function
magpie_context_walk:
  .cfi_startproc
  .cfi_signal_frame
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset rbx, 0
  movq %rdi, %rbx
  movq %rsi, %rdi
  movq %rdx, %rsi
  .cfi_remember_state
  .cfi_escape 0x0f, 3, 0x73, 8, 0x06
  .cfi_escape 0x10, 16, 2, 0x73, 0
  .cfi_escape 0x10, 6, 2, 0x73, 16
  .cfi_escape 0x10, 3, 2, 0x73, 24
  .cfi_escape 0x10, 12, 2, 0x73, 32
  .cfi_escape 0x10, 13, 2, 0x73, 40
  .cfi_escape 0x10, 14, 2, 0x73, 48
  .cfi_escape 0x10, 15, 2, 0x73, 56
  nop
  callq _Unwind_Backtrace@PLT
  nop
  .cfi_restore_state
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore rbx
  ret
  .cfi_endproc
  .size magpie_context_walk, .-magpie_context_walk
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .hidden magpie_context_walk
  .globl magpie_context_walk
  .type magpie_context_walk, %function
magpie_context_walk:
  .cfi_startproc
  .cfi_signal_frame
  stp x29, x30, [sp, #-32]!
  .cfi_adjust_cfa_offset 32
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  str x19, [sp, #16]
  .cfi_rel_offset x19, 16
  mov x19, x0
  mov x0, x1
  mov x1, x2
  .cfi_remember_state
  .cfi_escape 0x0f, 3, 0x83, 8, 0x06
  .cfi_escape 0x10, 30, 2, 0x83, 0
  .cfi_escape 0x10, 29, 2, 0x83, 16
  .cfi_escape 0x10, 19, 2, 0x83, 24
  .cfi_escape 0x10, 20, 2, 0x83, 32
  .cfi_escape 0x10, 21, 2, 0x83, 40
  .cfi_escape 0x10, 22, 2, 0x83, 48
  .cfi_escape 0x10, 23, 2, 0x83, 56
  .cfi_escape 0x10, 24, 3, 0x83, 0xc0, 0x00
  .cfi_escape 0x10, 25, 3, 0x83, 0xc8, 0x00
  .cfi_escape 0x10, 26, 3, 0x83, 0xd0, 0x00
  .cfi_escape 0x10, 27, 3, 0x83, 0xd8, 0x00
  .cfi_escape 0x10, 28, 3, 0x83, 0xe0, 0x00
  nop
  bl _Unwind_Backtrace
  nop
  .cfi_restore_state
  ldr x19, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_adjust_cfa_offset -32
  .cfi_restore x19
  .cfi_restore x29
  .cfi_restore x30
  ret
  .cfi_endproc
  .size magpie_context_walk, .-magpie_context_walk
)");
#endif

extern "C" [[gnu::visibility("hidden")]] void magpie_context_walk(
    const magpie::context::Registers* registers, _Unwind_Trace_Fn trace, void* argument);

namespace magpie::context {
namespace {

static_assert(offsetof(Registers, pc) == 0 && offsetof(Registers, sp) == 8 &&
              offsetof(Registers, frame) == 16 && offsetof(Registers, others) == 24);

struct Walk {
  FrameVisitor visit;
  void* argument;
  int frames_to_skip;
};

_Unwind_Reason_Code trace(_Unwind_Context* context, void* its) {
  auto& walk = *static_cast<Walk*>(its);
  if (walk.frames_to_skip > 0) {
    --walk.frames_to_skip;
    return _URC_NO_REASON;
  }
  std::uintptr_t pc = _Unwind_GetIP(context);
  if (pc == 0) return _URC_END_OF_STACK;
  return walk.visit(walk.argument, pc, _Unwind_GetCFA(context)) ? _URC_NO_REASON
                                                                : _URC_END_OF_STACK;
}

}  // namespace

void walk_from(const Registers& registers, FrameVisitor visit, void* argument) {
  Walk walk{visit, argument, 1};  // magpie_context_walk itself
  magpie_context_walk(&registers, trace, &walk);
}

[[gnu::noinline]] void walk_here(FrameVisitor visit, void* argument) {
  Walk walk{visit, argument, 1};
  _Unwind_Backtrace(trace, &walk);
  asm volatile("" ::: "memory");  // not a tail call: this frame is the one that is skipped
}

#if defined(__x86_64__)

// A dump reads stacks that may move on meanwhile, and checks afterwards.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] Registers registers_of(const void* saved) {
  // As swap() pushed them: float control, where to continue, rbp.
  auto* words = static_cast<const std::uintptr_t*>(saved);
  Registers registers{};
  registers.pc = words[1];
  registers.frame = words[2];
  registers.sp = reinterpret_cast<std::uintptr_t>(words + 3);
  return registers;
}

Registers registers_of(const ucontext_t& interrupted) {
  const greg_t* all = interrupted.uc_mcontext.gregs;
  auto word = [all](int number) { return static_cast<std::uintptr_t>(all[number]); };
  return {word(REG_RIP),
          word(REG_RSP),
          word(REG_RBP),
          {word(REG_RBX), word(REG_R12), word(REG_R13), word(REG_R14), word(REG_R15)}};
}

std::uintptr_t return_slot_of(std::uintptr_t sp) { return sp - sizeof(std::uintptr_t); }

#elif defined(__aarch64__)

[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] Registers registers_of(const void* saved) {
  auto* words = static_cast<const std::uintptr_t*>(saved);
  Registers registers{};
  registers.pc = words[1];
  registers.frame = words[2];
  registers.sp = reinterpret_cast<std::uintptr_t>(words + 4);
  return registers;
}

// The link register is lost: if a function that calls nothing was interrupted, its caller is
// missing.
Registers registers_of(const ucontext_t& interrupted) {
  const auto& all = interrupted.uc_mcontext;
  Registers registers{};
  registers.pc = all.pc;
  registers.sp = all.sp;
  registers.frame = all.regs[29];
  for (int i = 0; i < 10; ++i) registers.others[i] = all.regs[19 + i];
  return registers;
}

std::uintptr_t return_slot_of(std::uintptr_t) { return 0; }

#endif

}  // namespace magpie::context
