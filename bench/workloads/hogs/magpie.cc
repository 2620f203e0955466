// hogs: as many endless loops as twice the procs, without any call, and one goroutine that sleeps 1
// ms in a loop. How late that one wakes up, and how fairly the loops share the CPUs.
#include <magpie/magpie.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <vector>

#include "measure.h"

namespace {

struct alignas(64) Loop {
  std::atomic<long> turns{0};
};

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 2));
  long milliseconds = args.number("milliseconds", 3000);
  static std::vector<Loop> loops(static_cast<std::size_t>(2 * procs));
  magpie::run(magpie::Options{.procs = procs}, [&] {
    for (Loop& loop : loops) {
      magpie::go([&loop] {
        for (;;)
          loop.turns.store(loop.turns.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
      });
    }
    std::vector<double> late_ms;
    auto begin = static_cast<double>(bench::now_ns());
    while (static_cast<double>(bench::now_ns()) - begin < milliseconds * 1e6) {
      auto before = static_cast<double>(bench::now_ns());
      magpie::sleep_for(std::chrono::milliseconds(1));
      late_ms.push_back((static_cast<double>(bench::now_ns()) - before) / 1e6 - 1);
    }
    std::sort(late_ms.begin(), late_ms.end());
    long least = loops[0].turns, most = loops[0].turns;
    for (Loop& loop : loops) {
      least = std::min(least, loop.turns.load());
      most = std::max(most, loop.turns.load());
    }
    bench::report("p99_late_ms", late_ms[late_ms.size() * 99 / 100]);
    bench::report("max_late_ms", late_ms.back());
    bench::report("median_late_ms", late_ms[late_ms.size() / 2]);
    bench::report("least_share_percent",
                  100.0 * static_cast<double>(least) / static_cast<double>(most));
    std::fflush(stdout);
    _exit(0);  // the loops never end
  });
}
