// valgrind.h: tells Valgrind which memory is a stack. Without Valgrind that is a handful of
// instructions that do nothing.
//
// Valgrind watches the stack pointer. A small jump looks to it like a frame that came or went, and
// it then forbids to touch the bytes between. Goroutine stacks lie close to each other, so Valgrind
// has to know them. We ask it by instructions that no compiler makes. They are part of its
// interface and documented with it (valgrind.h), so every build can ask.
#pragma once

#include <cstddef>
#include <cstdint>

namespace magpie::base {

namespace detail {

inline std::uintptr_t ask_valgrind(std::uintptr_t request, std::uintptr_t first,
                                   std::uintptr_t second) {
  volatile std::uintptr_t question[6] = {request, first, second, 0, 0, 0};
#if defined(__x86_64__)
  std::uintptr_t answer = 0;
  asm volatile(
      "rolq $3, %%rdi\n\t"
      "rolq $13, %%rdi\n\t"
      "rolq $61, %%rdi\n\t"
      "rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(&question[0])
      : "cc", "memory");
  return answer;
#elif defined(__aarch64__)
  register std::uintptr_t answer asm("x3") = 0;
  register volatile std::uintptr_t* at asm("x4") = question;
  asm volatile(
      "ror x12, x12, #3\n\t"
      "ror x12, x12, #13\n\t"
      "ror x12, x12, #51\n\t"
      "ror x12, x12, #61\n\t"
      "orr x10, x10, x10"
      : "+r"(answer)
      : "r"(at)
      : "cc", "memory");
  return answer;
#endif
}

}  // namespace detail

// Returns Valgrind's number for the stack.
inline unsigned announce_stack_to_valgrind(const void* low, std::size_t size) {
  auto from = reinterpret_cast<std::uintptr_t>(low);
  return static_cast<unsigned>(detail::ask_valgrind(0x1501, from, from + size));
}
inline void renounce_stack_to_valgrind(unsigned number) { detail::ask_valgrind(0x1502, number, 0); }

// The frames that these bytes belonged to are gone, but we read the bytes all the same.
inline void excuse_to_valgrind(const volatile void* memory, std::size_t size) {
  constexpr std::uintptr_t kMemcheckMakeDefined = std::uintptr_t{'M'} << 24 | 'C' << 16 | 2;
  detail::ask_valgrind(kMemcheckMakeDefined, reinterpret_cast<std::uintptr_t>(memory), size);
}

}  // namespace magpie::base
