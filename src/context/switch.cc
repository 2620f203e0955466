#include "context/switch.h"

#include "context/float_control.h"

// The first instructions of a new stack. swap() jumps here with the value in the first argument
// register and the stack pointer at the address of the entry function. The CFI says two things:
// there is no caller, stop unwinding; and which personality decides about an exception that comes
// this far. If it is to be caught, unwinding ends at magpie_context_land. On AArch64 both begin
// with `bti j`, as they are jumped to.
#if defined(__x86_64__)
asm(R"(
  .text
  .type magpie_context_start, @function
magpie_context_start:
  .cfi_startproc
  .cfi_personality 0x1b, magpie_context_personality
  .cfi_undefined rip
  popq %rax
  xorl %ebp, %ebp
  callq *%rax
  ud2
magpie_context_land:
  movq %rax, %rdi
  xorl %ebp, %ebp
  callq magpie_context_take
  callq magpie_context_go_on
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
  .cfi_personality 0x1b, magpie_context_personality
  .cfi_undefined x30
  hint #36
  ldr x1, [sp], #16
  mov x29, xzr
  blr x1
  brk #1
magpie_context_land:
  hint #36
  mov x29, xzr
  bl magpie_context_take
  bl magpie_context_go_on
  brk #1
  .cfi_endproc
  .size magpie_context_start, .-magpie_context_start
)");
#endif

extern "C" {
void magpie_context_start();
void magpie_context_land();
}

namespace magpie::context {
namespace {

FirstFrame first_frame = {};

#if defined(__x86_64__)
struct Prepared {
  std::uint64_t float_control;
  void (*start)();
  std::uint64_t frame_pointer;
  Entry entry;
};
#elif defined(__aarch64__)
struct Prepared {
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
  // On x86-64 the start code pops the entry's address, which leaves the stack 16-aligned for its
  // call.
  auto* frame = reinterpret_cast<Prepared*>(bytes - sizeof(Prepared));
  *frame = Prepared{};
  frame->float_control = default_float_control();
  frame->start = magpie_context_start;
  frame->entry = entry;
  return frame;
}

void set_first_frame(const FirstFrame& hooks) { first_frame = hooks; }

// The personality of the first frame, in the words of the C++ ABI for exception handling. The first
// phase looks for a frame that catches, the second unwinds. Called from assembly only.
extern "C" {

[[gnu::used, gnu::visibility("hidden")]] _Unwind_Reason_Code magpie_context_personality(
    int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception* exception,
    _Unwind_Context* context) {
  if (first_frame.catches == nullptr) return _URC_CONTINUE_UNWIND;
  if ((actions & _UA_FORCE_UNWIND) != 0) {
    first_frame.refuse_to_unwind();
    return _URC_CONTINUE_UNWIND;
  }
  if ((actions & _UA_SEARCH_PHASE) != 0)
    return first_frame.catches(exception) ? _URC_HANDLER_FOUND : _URC_CONTINUE_UNWIND;
  if ((actions & _UA_HANDLER_FRAME) == 0) return _URC_CONTINUE_UNWIND;
  _Unwind_SetGR(context, __builtin_eh_return_data_regno(0),
                reinterpret_cast<std::uintptr_t>(exception));
  _Unwind_SetIP(context, reinterpret_cast<std::uintptr_t>(magpie_context_land));
  return _URC_INSTALL_CONTEXT;
}

[[gnu::used, gnu::visibility("hidden")]] void magpie_context_take(
    _Unwind_Exception* exception) noexcept {
  first_frame.take(exception);
}

[[gnu::used, gnu::visibility("hidden")]] void magpie_context_go_on() { first_frame.go_on(); }
}

}  // namespace magpie::context
