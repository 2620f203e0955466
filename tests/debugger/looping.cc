// For a debugger: loops that are preempted all the time, and then a goroutine in which to stop.
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdio>

namespace {
std::atomic<bool> over{false};
}

extern "C" [[gnu::noinline]] void stop_here() { over.store(true); }

int main() {
  using namespace std::chrono_literals;
  magpie::run(magpie::Options{.procs = 2, .time_slice = 1ms}, [] {
    magpie::WaitGroup loops;
    for (int i = 0; i < 6; ++i) {
      loops.go([] {
        while (!over.load(std::memory_order_relaxed)) {
        }
      });
    }
    while (magpie::stats().total.preemptions < 20) magpie::sleep_for(1ms);
    magpie::spawn([] { stop_here(); }).join();
    loops.wait();
  });
  std::puts("all loops ended");
}
