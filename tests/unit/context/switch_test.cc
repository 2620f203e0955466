// switch_test.cc: leave one stack, go on on another.

#include "context/switch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "side.h"

namespace magpie::context {
namespace {

void* number(std::uintptr_t n) { return reinterpret_cast<void*>(n); }

TEST(Switch, TheFirstValueReachesTheEntryAndLaterOnesReturnFromSwap) {
  Side here;
  std::vector<void*> seen;
  Side* there_at = nullptr;
  Side there([&](void* first) {
    seen.push_back(first);
    seen.push_back(switch_sides(*there_at, here, number(101)));
    seen.push_back(switch_sides(*there_at, here, number(102)));
  });
  there_at = &there;
  EXPECT_EQ(switch_sides(here, there, number(1)), number(101));
  EXPECT_EQ(switch_sides(here, there, number(2)), number(102));
  EXPECT_EQ(switch_sides(here, there, number(3)), nullptr);
  EXPECT_TRUE(there.is_over());
  EXPECT_EQ(seen, (std::vector<void*>{number(1), number(2), number(3)}));
}

TEST(Switch, ThePreparedSideRunsOnItsOwnAlignedStack) {
  Side here;
  const void* local = nullptr;
  bool aligned = false;
  Side there([&](void*) {
    alignas(16) volatile char mark = 0;
    local = const_cast<const char*>(&mark);
    // What the ABI promises at every call; SSE spills rely on it.
    aligned = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) % 16 == 0;
  });
  switch_sides(here, there, nullptr);
#if !defined(MAGPIE_ASAN)  // ASan may keep locals on a fake stack
  EXPECT_TRUE(there.holds(local));
#endif
  EXPECT_TRUE(aligned);
}

TEST(Switch, ManySidesKeepTheirLocalsThroughManySwitches) {
  constexpr std::uintptr_t kSides = 50;
  constexpr std::uintptr_t kRounds = 200;
  Side here;
  std::vector<std::unique_ptr<Side>> sides;
  for (std::uintptr_t i = 0; i < kSides; ++i) {
    sides.push_back(std::make_unique<Side>([&, i](void*) {
      std::uintptr_t sum = i;
      double half = static_cast<double>(i) / 2;
      std::string text = std::to_string(i);
      for (std::uintptr_t round = 0; round < kRounds; ++round) {
        sum += reinterpret_cast<std::uintptr_t>(switch_sides(*sides[i], here, number(sum)));
        half += 0.5;
        text += '.';
      }
      EXPECT_EQ(sum, i + kRounds * (kRounds + 1) / 2);
      EXPECT_EQ(half, static_cast<double>(i + kRounds) / 2);
      EXPECT_EQ(text.size(), std::to_string(i).size() + kRounds);
    }));
  }
  for (std::uintptr_t round = 0; round <= kRounds; ++round) {
    for (auto& side : sides) switch_sides(here, *side, number(round));
  }
  for (auto& side : sides) EXPECT_TRUE(side->is_over());
}

#if defined(__aarch64__)
// The compiler is free to keep it in any register that it thinks is left alone.
[[MAGPIE_SWITCHES]] std::uintptr_t keep_over_switch(void** here, void* there, std::uintptr_t kept) {
  asm volatile("" : "+r"(kept));
  swap(here, there, nullptr);
  asm volatile("" : "+r"(kept));
  return kept;
}

void* first_side;
void* second_side;

[[MAGPIE_SWITCHES]] void spoil_x18(void*) {
  for (;;) {
    asm volatile("mov x18, #0x123" : : : "x18");
    swap(&second_side, first_side, nullptr);
  }
}

TEST(Switch, NothingIsKeptInX18WhichTheOtherSideMayUse) {
  alignas(16) static std::byte memory[64 * 1024];
  second_side = prepare(memory + sizeof memory, spoil_x18);
  EXPECT_EQ(keep_over_switch(&first_side, second_side, 4711), 4711u);
}
#endif

TEST(Switch, OnePreparedSideMaySwitchStraightToAnother) {
  Side here;
  std::string order;
  Side* first_at = nullptr;
  Side second([&](void*) { order += 'b'; });
  Side first([&](void*) {
    order += 'a';
    switch_sides(*first_at, second, nullptr);
    order += 'c';
    switch_sides(*first_at, here, nullptr);
  });
  first_at = &first;
  switch_sides(here, first, nullptr);
  EXPECT_EQ(order, "abc");
  EXPECT_TRUE(second.is_over());
}

// Calls switch_sides with known values in every register that a callee must keep and that the
// compiler lets us name. True if all of them came back.
#if defined(__x86_64__)
[[gnu::noinline]] bool switch_keeps_registers(Side& from, Side& to, std::uint64_t seed) {
  register std::uint64_t b asm("rbx") = seed + 1;
  register std::uint64_t c asm("r12") = seed + 2;
  register std::uint64_t d asm("r13") = seed + 3;
  register std::uint64_t e asm("r14") = seed + 4;
  register std::uint64_t f asm("r15") = seed + 5;
  asm volatile("" : "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  switch_sides(from, to, nullptr);
  asm volatile("" : "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  return b == seed + 1 && c == seed + 2 && d == seed + 3 && e == seed + 4 && f == seed + 5;
}
#elif defined(__aarch64__)
[[gnu::noinline]] bool switch_keeps_registers(Side& from, Side& to, std::uint64_t seed) {
  register std::uint64_t a asm("x19") = seed + 1;
  register std::uint64_t b asm("x20") = seed + 2;
  register std::uint64_t c asm("x21") = seed + 3;
  register std::uint64_t d asm("x22") = seed + 4;
  register std::uint64_t e asm("x23") = seed + 5;
  register std::uint64_t f asm("x27") = seed + 6;
  register double v asm("d8") = static_cast<double>(seed) + 0.25;
  register double w asm("d15") = static_cast<double>(seed) + 0.75;
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+w"(v), "+w"(w));
  switch_sides(from, to, nullptr);
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+w"(v), "+w"(w));
  return a == seed + 1 && b == seed + 2 && c == seed + 3 && d == seed + 4 && e == seed + 5 &&
         f == seed + 6 && v == static_cast<double>(seed) + 0.25 &&
         w == static_cast<double>(seed) + 0.75;
}
#endif

TEST(Switch, RegistersThatACalleeMustKeepAreKeptOnBothSides) {
  Side here;
  bool kept_there = false;
  Side* there_at = nullptr;
  Side there([&](void*) { kept_there = switch_keeps_registers(*there_at, here, 2000); });
  there_at = &there;
  EXPECT_TRUE(switch_keeps_registers(here, there, 1000));
  EXPECT_TRUE(switch_keeps_registers(here, there, 3000));
  EXPECT_TRUE(kept_there);
}

}  // namespace
}  // namespace magpie::context
