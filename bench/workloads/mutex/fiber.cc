// mutex: fibers that lock, count and unlock, all the same mutex. The result is wall time over all
// of these.
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/mutex.hpp>
#include <cstdlib>
#include <mutex>

#include "fiber_procs.h"
#include "measure.h"

namespace {

void lock_all(long fibers, long rounds) {
  boost::fibers::mutex mutex;
  long count = 0;
  std::vector<boost::fibers::fiber> all;
  for (long i = 0; i < fibers; ++i) {
    all.emplace_back([&mutex, &count, rounds] {
      for (long n = 0; n < rounds; ++n) {
        std::lock_guard hold(mutex);
        ++count;
      }
    });
  }
  for (auto& fiber : all) fiber.join();
  if (count != fibers * rounds) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  long fibers = args.number("goroutines", 8);
  long rounds = args.number("rounds", 1'000'000);
  bench::with_fiber_procs(args, [&] {
    double total = static_cast<double>(fibers) * static_cast<double>(rounds);
    double first = bench::time_ns([&] { lock_all(fibers, rounds); });
    double warm = bench::time_ns([&] { lock_all(fibers, rounds); });
    bench::report("first_ns_per_op", first / total);
    bench::report("ns_per_op", warm / total);
  });
}
