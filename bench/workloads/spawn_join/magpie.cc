// spawn_join: main starts a million empty goroutines, then waits for all of them.
#include <magpie/magpie.h>

#include "measure.h"

namespace {

void spawn_and_join(long goroutines) {
  magpie::WaitGroup all;
  all.add(static_cast<int>(goroutines));
  for (long i = 0; i < goroutines; ++i) magpie::go([&all] { all.done(); });
  all.wait();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long goroutines = args.number("goroutines", 1'000'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    double first = bench::time_ns([&] { spawn_and_join(goroutines); });
    double warm = bench::time_ns([&] { spawn_and_join(goroutines); });
    bench::report("first_ns_per_op", first / static_cast<double>(goroutines));
    bench::report("ns_per_op", warm / static_cast<double>(goroutines));
  });
}
