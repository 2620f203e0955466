// spawn_latency.cc: how long a new goroutine waits before it runs, and how often Ps steal then.
//
// One goroutine starts all the others, in bursts. Look at both columns: the longer the burst, the
// longer half of the goroutines wait. In long bursts other Ps have time to come and steal, which
// makes the waits shorter than they would be; a goroutine that is started alone is never worth it.
#include <magpie/magpie.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

using Clock = std::chrono::steady_clock;

namespace {

struct Row {
  double median_us, p99_us, steals_per_second;
};

Row start_in_bursts(int burst) {
  constexpr int kGoroutines = 20'000;
  std::vector<std::int64_t> waits(kGoroutines, -1);  // nanoseconds; each has its own place
  const std::uint64_t steals_before = magpie::stats().total.steals_succeeded;
  const auto start = Clock::now();
  for (int i = 0; i < kGoroutines; i += burst) {
    magpie::WaitGroup all;
    for (int k = i; k < i + burst; ++k) {
      all.go([&wait = waits[static_cast<std::size_t>(k)], born = Clock::now()] {
        const auto begun = Clock::now();
        wait = (begun - born) / std::chrono::nanoseconds(1);
        while (Clock::now() < begun + std::chrono::microseconds(2)) continue;  // works
      });
    }
    all.wait();
  }
  const std::chrono::duration<double> took = Clock::now() - start;
  const std::uint64_t steals = magpie::stats().total.steals_succeeded - steals_before;
  std::sort(waits.begin(), waits.end());
  return {static_cast<double>(waits[kGoroutines / 2]) / 1e3,
          static_cast<double>(waits[kGoroutines / 100 * 99]) / 1e3,
          static_cast<double>(steals) / took.count()};
}

}  // namespace

int main() {
  return magpie::run(magpie::Options{.procs = 4}, [] {
    // Once is enough on an idle machine. On a busy one a thief may come too late.
    const auto limit = Clock::now() + std::chrono::minutes(2);
    bool right = false;
    while (!right && Clock::now() < limit) {
      std::printf("%8s %14s %14s %10s\n", "burst", "median wait", "99th of 100", "steals/s");
      right = true;
      Row alone = {};
      double median_before = 0;
      for (int burst : {1, 10, 100, 1000}) {
        const Row row = start_in_bursts(burst);
        std::printf("%8d %11.1f us %11.1f us %10.0f\n", burst, row.median_us, row.p99_us,
                    row.steals_per_second);
        right = right && row.median_us > median_before;
        median_before = row.median_us;
        if (burst == 1) alone = row;
        if (burst == 1000) right = right && row.steals_per_second > alone.steals_per_second;
      }
    }
    return right ? 0 : 1;
  });
}
