// fib.h: what the C++ programs of this workload share: two rounds, checked.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "measure.h"

namespace bench {

inline long plain_fib(long n) {
  long a = 0, b = 1;
  for (; n > 0; --n) b = a + std::exchange(a, b);
  return a;
}

template <class Fib>
void measure_fib(const Args& args, Fib fib) {
  long n = args.number("n", 32);
  auto compute = [&] {
    if (long found = fib(n); found != plain_fib(n)) {
      std::fprintf(stderr, "fib(%ld) is not %ld\n", n, found);
      std::exit(1);
    }
  };
  double first = time_ns(compute);
  double warm = time_ns(compute);
  report("first_ms", first / 1e6);
  report("ms", warm / 1e6);
}

}  // namespace bench
