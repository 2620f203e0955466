// yield: a hundred fibers that do nothing but yield. The result is wall time over all yields.
#include <boost/fiber/fiber.hpp>

#include "fiber_procs.h"
#include "measure.h"

namespace {

void yield_all(long fibers, long yields) {
  std::vector<boost::fibers::fiber> all;
  for (long i = 0; i < fibers; ++i) {
    all.emplace_back([yields] {
      for (long n = 0; n < yields; ++n) boost::this_fiber::yield();
    });
  }
  for (auto& fiber : all) fiber.join();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  long fibers = args.number("goroutines", 100);
  long yields = args.number("yields", 100'000);
  bench::with_fiber_procs(args, [&] {
    double total = static_cast<double>(fibers) * static_cast<double>(yields);
    double first = bench::time_ns([&] { yield_all(fibers, yields); });
    double warm = bench::time_ns([&] { yield_all(fibers, yields); });
    bench::report("first_ns_per_op", first / total);
    bench::report("ns_per_op", warm / total);
  });
}
