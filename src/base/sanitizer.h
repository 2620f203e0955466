// sanitizer.h: tells AddressSanitizer, ThreadSanitizer and Valgrind about our stacks. Empty without
// the first two, but every build tells Valgrind when a stack is made.
//
// A Fiber belongs to a stack. before_switch() runs on the old stack just before the switch,
// after_switch() runs first on the new one. A stack that is left for good (Departure::for_ever) may
// be reused from its top. Then ASan drops its fake frames and TSan gets a new fiber, because the
// frames left on it never return.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define MAGPIE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MAGPIE_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define MAGPIE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MAGPIE_TSAN 1
#endif
#endif

#if defined(MAGPIE_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(MAGPIE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#include "base/valgrind.h"

namespace magpie::base {

#if defined(MAGPIE_ASAN) || defined(MAGPIE_TSAN)
inline constexpr bool kFibersAreTracked = true;
#else
inline constexpr bool kFibersAreTracked = false;
#endif

enum class Departure { to_come_back, for_ever };

struct Fiber {
#if defined(MAGPIE_ASAN)
  const void* low = nullptr;
  std::size_t size = 0;
  void* fake_stack = nullptr;
#endif
#if defined(MAGPIE_TSAN)
  void* tsan = nullptr;
#endif
  unsigned valgrind_number = 0;
};

// A new stack [low, low + size).
inline void open_fiber(Fiber& fiber, void* low, std::size_t size) {
#if defined(MAGPIE_ASAN)
  fiber.low = low;
  fiber.size = size;
#endif
  fiber.valgrind_number = announce_stack_to_valgrind(low, size);
}

inline void close_fiber(Fiber& fiber) {
#if defined(MAGPIE_TSAN)
  if (fiber.tsan != nullptr) __tsan_destroy_fiber(fiber.tsan);
  fiber.tsan = nullptr;
#endif
  renounce_stack_to_valgrind(fiber.valgrind_number);
}

// The stack is about to be entered from its top: forget what lies on it.
inline void restart_fiber([[maybe_unused]] Fiber& fiber) {
#if defined(MAGPIE_ASAN)
  __asan_unpoison_memory_region(fiber.low, fiber.size);
  fiber.fake_stack = nullptr;
#endif
#if defined(MAGPIE_TSAN)
  if (fiber.tsan != nullptr) __tsan_destroy_fiber(fiber.tsan);
  fiber.tsan = __tsan_create_fiber(0);
#endif
}

// The memory is about to be unmapped with frames on it that never returned.
inline void forget_memory([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t size) {
#if defined(MAGPIE_ASAN)
  __asan_unpoison_memory_region(memory, size);
#endif
}

// The stack that the calling thread was born with.
inline void adopt_thread_stack([[maybe_unused]] Fiber& fiber) {
#if defined(MAGPIE_TSAN)
  fiber.tsan = __tsan_get_current_fiber();
#endif
}

// Always inlined: ThreadSanitizer counts calls and returns of functions on each stack. A function
// that is called on one stack and returns on another would be counted as a call on the first and as
// a return on the second.
[[gnu::always_inline]] inline void before_switch([[maybe_unused]] Fiber& from,
                                                 [[maybe_unused]] Fiber& to,
                                                 [[maybe_unused]] Departure departure) {
#if defined(MAGPIE_ASAN)
  __sanitizer_start_switch_fiber(departure == Departure::for_ever ? nullptr : &from.fake_stack,
                                 to.low, to.size);
#endif
#if defined(MAGPIE_TSAN)
  __tsan_switch_to_fiber(to.tsan, 0);
#endif
}

// `from` is the fiber that was left. A thread's own stack learns its bounds here.
[[gnu::always_inline]] inline void after_switch([[maybe_unused]] Fiber& now,
                                                [[maybe_unused]] Fiber& from) {
#if defined(MAGPIE_ASAN)
  const void* low = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(now.fake_stack, &low, &size);
  if (from.low == nullptr) {
    from.low = low;
    from.size = size;
  }
#endif
}

}  // namespace magpie::base
