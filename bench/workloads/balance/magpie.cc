// balance: a thousand goroutines of about 1 ms of computation each, none of which calls the
// runtime, all started by one goroutine, so all born on one P. Ideal is the time of the same work
// done by one goroutine, measured just before, divided by the number of procs.
//
// A virtual machine does not always have its CPUs to itself. So the same ideal is also measured for
// as many plain threads with equal shares of the work: what they miss, no scheduler can reach.
#include <magpie/magpie.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "measure.h"

namespace {

std::uint64_t rounds_per_millisecond() {
  constexpr std::uint64_t kRounds = 5'000'000;
  double best_ns = std::numeric_limits<double>::max();
  for (int i = 0; i < 10; ++i) {
    best_ns = std::min(best_ns, bench::time_ns([] { bench::keep(bench::busy_work(kRounds, 1)); }));
  }
  return static_cast<std::uint64_t>(kRounds * 1e6 / best_ns);
}

void work_in_sequence(long pieces, std::uint64_t rounds) {
  for (long i = 0; i < pieces; ++i)
    bench::keep(bench::busy_work(rounds, static_cast<std::uint64_t>(i)));
}

void work_in_goroutines(long pieces, std::uint64_t rounds) {
  magpie::WaitGroup all;
  all.add(static_cast<int>(pieces));
  for (long i = 0; i < pieces; ++i) {
    magpie::go([&all, i, rounds] {
      bench::keep(bench::busy_work(rounds, static_cast<std::uint64_t>(i)));
      all.done();
    });
  }
  all.wait();
}

void work_in_threads(long pieces, std::uint64_t rounds, int count) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([=] { work_in_sequence(pieces / count, rounds); });
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 2));
  long goroutines = args.number("goroutines", 1'000);

  std::uint64_t rounds = rounds_per_millisecond();
  double sequential = 0;
  magpie::run(magpie::Options{.procs = procs}, [&] {
    work_in_goroutines(goroutines / 10, rounds);
    sequential = bench::time_ns([&] { work_in_sequence(goroutines, rounds); });
    double parallel = bench::time_ns([&] { work_in_goroutines(goroutines, rounds); });
    bench::report("sequential_ms", sequential / 1e6);
    bench::report("parallel_ms", parallel / 1e6);
    bench::report("percent_of_ideal", 100 * sequential / procs / parallel);
  });
  double threads = bench::time_ns([&] { work_in_threads(goroutines, rounds, procs); });
  bench::report("threads_percent_of_ideal", 100 * sequential / procs / threads);
}
