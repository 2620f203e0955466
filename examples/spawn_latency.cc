// spawn_latency.cc: how long a new goroutine waits before it runs, and how often Ps steal then.
//
// One goroutine starts all the others, in bursts. The longer the burst, the longer the last of them
// wait, and the more the other Ps steal. Look at both columns: stealing is what keeps the waits
// short.
#include <magpie/magpie.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

using Clock = std::chrono::steady_clock;

int main() {
  constexpr int kGoroutines = 20'000;
  return magpie::run([] {
    bool right = true;
    std::printf("%8s %14s %14s %10s\n", "burst", "median wait", "99th of 100", "steals/s");
    for (int burst : {1, 10, 100, 1000}) {
      std::vector<std::int64_t> waits(kGoroutines, -1);  // nanoseconds; each has its own place
      const std::uint64_t steals_before = magpie::stats().total.steals_succeeded;
      const auto start = Clock::now();
      for (int i = 0; i < kGoroutines; i += burst) {
        magpie::WaitGroup all;
        for (int k = i; k < i + burst; ++k) {
          all.go([&wait = waits[static_cast<std::size_t>(k)], born = Clock::now()] {
            wait = (Clock::now() - born) / std::chrono::nanoseconds(1);
          });
        }
        all.wait();
      }
      const std::chrono::duration<double> took = Clock::now() - start;
      const std::uint64_t steals = magpie::stats().total.steals_succeeded - steals_before;
      std::sort(waits.begin(), waits.end());
      std::printf("%8d %11.1f us %11.1f us %10.0f\n", burst,
                  static_cast<double>(waits[kGoroutines / 2]) / 1e3,
                  static_cast<double>(waits[kGoroutines / 100 * 99]) / 1e3,
                  static_cast<double>(steals) / took.count());
      // Every goroutine ran, after it was born; none was stolen more than a few times.
      right = right && waits.front() >= 0 && steals <= 4u * kGoroutines;
    }
    return right ? 0 : 1;
  });
}
