// blocking.cc: goroutines that block their threads, and goroutines that never give way, do not stop
// the others.
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

using namespace std::chrono_literals;

int main() {
  return magpie::run(magpie::Options{.procs = 2}, [] {
    magpie::WaitGroup group;

    // Calls that block: declared, so that the P goes on at once ...
    for (int i = 0; i < 10; ++i) group.go([] { magpie::blocking([] { usleep(20'000); }); });
    // ... or not, as some library may do; the runtime finds out.
    for (int i = 0; i < 10; ++i) group.go([] { usleep(20'000); });

    // Loops that never call anything.
    std::atomic<bool> stop{false};
    for (int i = 0; i < 4; ++i) {
      group.go([&] {
        while (!stop.load(std::memory_order_relaxed)) {
        }
      });
    }

    // A library that keeps state per thread.
    bool stayed = false;
    group.go([&] {
      magpie::ThreadLock stay_here;
      const pid_t thread = gettid();
      magpie::sleep_for(5ms);
      stayed = gettid() == thread;
    });

    for (int i = 0; i < 10; ++i) magpie::sleep_for(1ms);
    std::printf("ten sleeps are over, beside loops and blocking calls\n");
    stop = true;
    group.wait();
    std::printf("all have ended; one was still on its thread: %s\n", stayed ? "yes" : "no");
    return stayed ? 0 : 1;  // with a P kept by a call or a loop, nothing would end
  });
}
