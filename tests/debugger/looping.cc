// For a debugger: loops that are preempted all the time, and goroutines in which to stop.
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdio>

namespace {
constexpr int kLoops = 6;
std::atomic<int> begun{0};
std::atomic<bool> over{false};
volatile int stops = 0;
}  // namespace

extern "C" [[gnu::noinline]] void stop_here() { stops = stops + 1; }

int main() {
  using namespace std::chrono_literals;
  magpie::run(magpie::Options{.procs = 2, .time_slice = 1ms}, [] {
    magpie::WaitGroup loops;
    for (int i = 0; i < kLoops; ++i) {
      loops.go([] {
        begun.fetch_add(1);
        while (!over.load(std::memory_order_relaxed)) {
        }
      });
    }
    while (begun.load() < kLoops || magpie::stats().total.preemptions < 20) {
      magpie::sleep_for(1ms);
    }
    for (int i = 0; i < 200; ++i) {  // at one of them a loop will be stopped
      magpie::spawn([] { stop_here(); }).join();
      magpie::sleep_for(1ms);
    }
    over.store(true);
    loops.wait();
  });
  std::puts("all loops ended");
}
