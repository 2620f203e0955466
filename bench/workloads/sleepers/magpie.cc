// sleepers: 100,000 goroutines sleep one second each. How late they wake on average and at worst,
// and the CPU time of the whole. The second of two rounds counts.
#include <magpie/magpie.h>

#include <algorithm>
#include <atomic>

#include "measure.h"

namespace {

struct Result {
  double mean_late_us, max_late_us, cpu_ms;
};

Result round(long goroutines, long milliseconds) {
  std::atomic<std::int64_t> late_sum{0}, late_max{0};
  std::int64_t duration = milliseconds * 1'000'000;
  double cpu_before = bench::cpu_ns();
  magpie::WaitGroup all;
  all.add(goroutines);
  for (long i = 0; i < goroutines; ++i) {
    magpie::go([&] {
      std::int64_t due = bench::now_ns() + duration;
      magpie::sleep_for(std::chrono::nanoseconds(duration));
      std::int64_t late = bench::now_ns() - due;
      late_sum.fetch_add(late, std::memory_order_relaxed);
      std::int64_t most = late_max.load(std::memory_order_relaxed);
      while (late > most && !late_max.compare_exchange_weak(most, late)) {
      }
      all.done();
    });
  }
  all.wait();
  double count = static_cast<double>(goroutines);
  return {static_cast<double>(late_sum) / count / 1e3, static_cast<double>(late_max) / 1e3,
          (bench::cpu_ns() - cpu_before) / 1e6};
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 2));
  long goroutines = args.number("goroutines", 100'000);
  long milliseconds = args.number("milliseconds", 1000);
  magpie::run(magpie::Options{.procs = procs}, [&] {
    Result first = round(goroutines, milliseconds);
    Result second = round(goroutines, milliseconds);
    bench::report("cpu_ms", second.cpu_ms);
    bench::report("mean_late_us", second.mean_late_us);
    bench::report("max_late_us", second.max_late_us);
    bench::report("first_cpu_ms", first.cpu_ms);
    bench::report("first_mean_late_us", first.mean_late_us);
  });
}
