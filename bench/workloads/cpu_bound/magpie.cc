// cpu_bound: 1,000 goroutines compute for 50 ms of CPU each, without any call. The time in all beside the ideal, and how
// many threads it took.
#include <magpie/magpie.h>

#include <ctime>

#include "measure.h"

namespace {

// A fixed amount of work, measured first.
void compute(long rounds) {
  volatile double sum = 0;
  for (long i = 1; i <= rounds; ++i) sum = sum + 1.0 / static_cast<double>(i);
}

long rounds_of_ms(double ms) {
  long rounds = 1'000'000;
  for (;;) {
    auto begin = static_cast<double>(bench::now_ns());
    compute(rounds);
    double took = static_cast<double>(bench::now_ns()) - begin;
    if (took > 50e6) return static_cast<long>(static_cast<double>(rounds) * ms * 1e6 / took);
    rounds *= 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 2));
  long goroutines = args.number("goroutines", 1000);
  long milliseconds = args.number("milliseconds", 50);
  long rounds = rounds_of_ms(static_cast<double>(milliseconds));
  magpie::run(magpie::Options{.procs = procs}, [&] {
    double cpu_before = bench::cpu_ns();
    auto begin = static_cast<double>(bench::now_ns());
    magpie::WaitGroup all;
    for (long i = 0; i < goroutines; ++i) all.go([rounds] { compute(rounds); });
    all.wait();
    double took = static_cast<double>(bench::now_ns()) - begin;
    double cpu = bench::cpu_ns() - cpu_before;
    magpie::Stats stats = magpie::stats();
    bench::report("percent_of_ideal", 100 * cpu / procs / took);
    bench::report("ms", took / 1e6);
    bench::report("threads", stats.threads);
    bench::report("preemptions", static_cast<double>(stats.total.preemptions));
  });
}
