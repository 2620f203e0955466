// sum.h: what the C++ programs of this workload share: the sum of an array, checked.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "measure.h"

namespace bench {

// sum(values): the sum of all of them, in parallel.
template <class Sum>
void measure_sum(const Args& args, Sum sum) {
  auto elements = static_cast<std::size_t>(args.number("elements", 10'000'000));
  constexpr int kRounds = 20;
  std::vector<double> values(elements, 0.5);
  double total = 0;
  double first = time_ns([&] { sum(values); });
  double ns = time_ns([&] {
    for (int round = 0; round < kRounds; ++round) total += sum(values);
  });
  if (total != static_cast<double>(elements) / 2 * kRounds) {
    std::fprintf(stderr, "wrong sum %f\n", total);
    std::exit(1);
  }
  report("first_ms", first / 1e6);
  report("ms", ns / kRounds / 1e6);
}

}  // namespace bench
