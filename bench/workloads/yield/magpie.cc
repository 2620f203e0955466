// yield: a hundred goroutines that do nothing but yield. The result is wall time over all yields.
#include <magpie/magpie.h>

#include "measure.h"

namespace {

void yield_all(long goroutines, long yields) {
  magpie::WaitGroup all;
  all.add(static_cast<int>(goroutines));
  for (long i = 0; i < goroutines; ++i) {
    magpie::go([&all, yields] {
      for (long n = 0; n < yields; ++n) magpie::yield();
      all.done();
    });
  }
  all.wait();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long goroutines = args.number("goroutines", 100);
  long yields = args.number("yields", 100'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    double total = static_cast<double>(goroutines) * static_cast<double>(yields);
    double first = bench::time_ns([&] { yield_all(goroutines, yields); });
    double warm = bench::time_ns([&] { yield_all(goroutines, yields); });
    bench::report("first_ns_per_op", first / total);
    bench::report("ns_per_op", warm / total);
  });
}
