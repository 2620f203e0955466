// park_many: a million goroutines start and wait at a gate; then it opens. Wall time for each, to
// start and to wait, and to wake and to end. All of it cold: the first thing that the process does.
#include <magpie/magpie.h>

#include "measure.h"

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long goroutines = args.number("goroutines", 1'000'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    magpie::WaitGroup arrived, gate, all;
    double parked = bench::time_ns([&] {
      arrived.add(static_cast<int>(goroutines));
      all.add(static_cast<int>(goroutines));
      gate.add(1);
      for (long i = 0; i < goroutines; ++i) {
        magpie::go([&] {
          arrived.done();
          gate.wait();
          all.done();
        });
      }
      arrived.wait();
    });
    double woken = bench::time_ns([&] {
      gate.done();
      all.wait();
    });
    bench::report("first_ns_per_op", parked / static_cast<double>(goroutines));
    bench::report("first_wake_ns_per_op", woken / static_cast<double>(goroutines));
  });
}
