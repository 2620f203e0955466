// live_stats.cc: what is the scheduler doing? stats() says.
//
// A plain thread watches while goroutines run; a goroutine may call stats() just as well. The
// counters are kept per P, so that counting costs nothing; stats() itself looks at every goroutine:
// call it ten times a second, not in a loop.
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace {

void print(const magpie::Stats& stats) {
  std::printf("%zu goroutines (%zu fresh, %zu runnable, %zu running, %zu waiting), %d threads\n",
              stats.goroutines, stats.fresh, stats.runnable, stats.running, stats.waiting,
              stats.threads);
  for (const magpie::ProcStats& p : stats.procs) {
    std::printf("  P%d: %3zu queued, %llu ticks, %llu ended, %llu stolen, busy %.1f ms\n", p.id,
                p.queue_length, static_cast<unsigned long long>(p.ticks),
                static_cast<unsigned long long>(p.goroutines_ended),
                static_cast<unsigned long long>(p.goroutines_stolen),
                static_cast<double>(p.busy_ns) / 1e6);
  }
}

void compute_for(std::chrono::microseconds time) {
  auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

}  // namespace

int main() {
  constexpr int kGoroutines = 400;
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      magpie::Stats stats = magpie::stats();
      if (!stats.procs.empty()) print(stats);  // empty: no runtime runs
    }
  });

  magpie::Stats last = magpie::run([] {
    magpie::WaitGroup all;
    for (int i = 0; i < kGoroutines; ++i) {
      all.go([] { compute_for(std::chrono::milliseconds(1)); });
    }
    all.wait();
    return magpie::stats();
  });
  done = true;
  watcher.join();

  std::printf("at the end:\n");
  print(last);
  // Goroutine 1 was started too, and took the last snapshot. A goroutine tells the WaitGroup before
  // it ends, so one per P may still be counted.
  bool right = last.total.goroutines_started >= kGoroutines &&
               last.goroutines <= 1 + last.procs.size() && last.running >= 1;
  return right ? 0 : 1;
}
