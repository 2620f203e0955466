// rw_mutex: goroutines that read under an RWMutex, and write every so often. The result is wall
// time over all of these.
#include <magpie/magpie.h>

#include <mutex>
#include <shared_mutex>

#include "measure.h"

namespace {

void use_all(long goroutines, long rounds, long write_every) {
  magpie::RWMutex mutex;
  long value = 0;
  magpie::WaitGroup all;
  all.add(goroutines);
  for (long i = 0; i < goroutines; ++i) {
    magpie::go([&, rounds, write_every] {
      long sum = 0;
      for (long n = 1; n <= rounds; ++n) {
        if (n % write_every == 0) {
          std::lock_guard hold(mutex);
          ++value;
        } else {
          std::shared_lock hold(mutex);
          sum += value;
        }
      }
      bench::keep(sum);
      all.done();
    });
  }
  all.wait();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long goroutines = args.number("goroutines", 8);
  long rounds = args.number("rounds", 1'000'000);
  long write_every = args.number("write_every", 1000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    double total = static_cast<double>(goroutines) * static_cast<double>(rounds);
    double first = bench::time_ns([&] { use_all(goroutines, rounds, write_every); });
    double warm = bench::time_ns([&] { use_all(goroutines, rounds, write_every); });
    bench::report("first_ns_per_op", first / total);
    bench::report("ns_per_op", warm / total);
  });
}
