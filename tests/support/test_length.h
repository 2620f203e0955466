// test_length.h: how long tests that repeat things go on, and where their random numbers come from.
//
//   MAGPIE_STRESS=short|long   a quarter of the usual length, or ten times it
//   MAGPIE_SEED=<number>       repeats a random test that printed this seed
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>

#include "base/sanitizer.h"

namespace magpie::support {

// `usual` rounds, adapted to the wish of the caller and to what sanitizers cost; at least 1.
inline int scaled(int usual) {
  const char* text = std::getenv("MAGPIE_STRESS");
  const std::string_view wish = text == nullptr ? "" : text;
  long rounds = usual;
  if (wish == "short") rounds /= 4;
  if (wish == "long") rounds *= 10;
#if defined(MAGPIE_ASAN)
  rounds /= 4;
#elif defined(MAGPIE_TSAN)
  rounds /= 100;  // a goroutine that blocks for the first time costs it a millisecond
#endif
  return rounds < 1 ? 1 : static_cast<int>(rounds);
}

// A seed for this run, printed so that a failure can be repeated.
inline std::uint64_t printed_seed() {
  const char* text = std::getenv("MAGPIE_SEED");
  const std::uint64_t seed =
      text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  std::printf("MAGPIE_SEED=%llu repeats this run\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace magpie::support
