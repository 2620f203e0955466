// mutex: goroutines that lock, count and unlock, all the same mutex. The result is wall time over
// all of these.
#include <magpie/magpie.h>

#include <cstdlib>
#include <mutex>

#include "measure.h"

namespace {

void lock_all(long goroutines, long rounds) {
  magpie::Mutex mutex;
  long count = 0;
  magpie::WaitGroup all;
  all.add(goroutines);
  for (long i = 0; i < goroutines; ++i) {
    magpie::go([&, rounds] {
      for (long n = 0; n < rounds; ++n) {
        std::lock_guard hold(mutex);
        ++count;
      }
      all.done();
    });
  }
  all.wait();
  if (count != goroutines * rounds) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long goroutines = args.number("goroutines", 8);
  long rounds = args.number("rounds", 1'000'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    double total = static_cast<double>(goroutines) * static_cast<double>(rounds);
    double first = bench::time_ns([&] { lock_all(goroutines, rounds); });
    double warm = bench::time_ns([&] { lock_all(goroutines, rounds); });
    bench::report("first_ns_per_op", first / total);
    bench::report("ns_per_op", warm / total);
  });
}
