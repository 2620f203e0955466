// saxpy.h: what the C++ programs of this workload share: loops of three lengths over the same
// arrays, checked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "measure.h"

namespace bench {

// loop(count, x, y): y[i] = x[i] / 2 + y[i] for i < count, in parallel.
template <class Loop>
void measure_saxpy(const Args& args, Loop loop) {
  auto elements = static_cast<std::size_t>(args.number("elements", 10'000'000));
  std::vector<float> x(elements, 2), y(elements, 1);
  float* data = y.data();
  long loops = 0;  // that covered all of y

  auto average_ns = [&](std::size_t count, int rounds) {
    for (int warm = 0; warm < 2; ++warm) loop(count, x.data(), data);
    double ns = time_ns([&] {
      for (int round = 0; round < rounds; ++round) loop(count, x.data(), data);
    });
    if (count == elements) loops += 2 + rounds;
    return ns / rounds;
  };
  double first = time_ns([&] { loop(elements, x.data(), data); });
  loops += 1;
  double large = average_ns(elements, 20);
  if (*std::min_element(y.begin(), y.end()) != static_cast<float>(1 + loops)) {
    std::fprintf(stderr, "saxpy: wrong result\n");
    std::exit(1);
  }
  report("first_ms", first / 1e6);
  report("ms", large / 1e6);
  report("us_of_100000", average_ns(std::min<std::size_t>(100'000, elements), 2000) / 1e3);
  report("us_of_1000", average_ns(std::min<std::size_t>(1000, elements), 20'000) / 1e3);
}

}  // namespace bench
