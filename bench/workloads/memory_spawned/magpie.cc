// memory_spawned: what a goroutine costs that was started but has not run yet. At one proc main
// starts a million without giving up its P and then reads the growth of the resident set.
// No warm-up: memory that is reused would not show.
#include <magpie/magpie.h>

#include <atomic>

#include "measure.h"

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long goroutines = args.number("goroutines", 1'000'000);

  // Without preemption: a time slice that ends in the loop would let some of them run.
  magpie::run(magpie::Options{.procs = procs, .preempt = false}, [&] {
    magpie::WaitGroup all;
    all.add(static_cast<int>(goroutines));
    std::atomic<long> started{0};

    long resident_before = bench::resident_bytes();
    long tables_before = bench::status_bytes("VmPTE");
    for (long i = 0; i < goroutines; ++i) {
      magpie::go([&all, &started] {
        started.fetch_add(1, std::memory_order_relaxed);  // only a count
        all.done();
      });
    }
    long resident = bench::resident_bytes() - resident_before;
    long tables = bench::status_bytes("VmPTE") - tables_before;
    long ran_early = started.load(std::memory_order_relaxed);
    all.wait();

    double count = static_cast<double>(goroutines);
    bench::report("ran_early", static_cast<double>(ran_early));
    bench::report("bytes_each", static_cast<double>(resident) / count);
    bench::report("bytes_each_with_page_tables", static_cast<double>(resident + tables) / count);
  });
}
