#include "context/switch.h"

#include "context/float_control.h"

// The first instructions of a new stack. swap() jumps here with the value in the first argument register and
// the stack pointer at the address of the entry function. The CFI says: no caller, stop unwinding.
#if defined(__x86_64__)
asm(R"(
  .text
  .type magpie_context_start, @function
magpie_context_start:
  .cfi_startproc
  .cfi_undefined rip
  popq %rax
  xorl %ebp, %ebp
  callq *%rax
  ud2
  .cfi_endproc
  .size magpie_context_start, .-magpie_context_start
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .type magpie_context_start, %function
magpie_context_start:
  .cfi_startproc
  .cfi_undefined x30
  hint #36
  ldr x1, [sp], #16
  mov x29, xzr
  blr x1
  brk #1
  .cfi_endproc
  .size magpie_context_start, .-magpie_context_start
)");
#endif

extern "C" void magpie_context_start();

namespace magpie::context {
namespace {

#if defined(__x86_64__)
struct FirstFrame {
  std::uint64_t float_control;
  void (*start)();
  std::uint64_t frame_pointer;
  Entry entry;
};
#elif defined(__aarch64__)
struct FirstFrame {
  std::uint64_t float_control;
  void (*start)();
  std::uint64_t frame_pointer;
  std::uint64_t padding;
  Entry entry;
  std::uint64_t padding_to_16;
};
#endif

}  // namespace

void* prepare(void* top, Entry entry) {
  auto* bytes = static_cast<std::byte*>(top);
  // On x86-64 the start code pops the entry's address, which leaves the stack 16-aligned for its call.
  auto* frame = reinterpret_cast<FirstFrame*>(bytes - sizeof(FirstFrame));
  *frame = FirstFrame{};
  frame->float_control = default_float_control();
  frame->start = magpie_context_start;
  frame->entry = entry;
  return frame;
}

}  // namespace magpie::context
