// set_procs.cc: changes how many goroutines run at the same time, while they run.
//
// By default there are as many Ps as the process may use CPUs: its affinity and the cgroup quotas
// above it. set_procs() overrules that, at any time. The queues of Ps that go away are handed on;
// nothing is lost.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>

int main() {
  constexpr int kGoroutines = 10'000;
  constexpr int kYields = 20;
  std::atomic<int> turns = 0;
  int failures = 0;

  magpie::run([&] {
    std::printf("this process may use %d CPUs; procs() is %d\n", magpie::num_cpu(),
                magpie::procs());
    magpie::WaitGroup all;
    for (int i = 0; i < kGoroutines; ++i) {
      all.go([&] {
        for (int turn = 0; turn < kYields; ++turn) {
          turns.fetch_add(1, std::memory_order_relaxed);
          magpie::yield();
        }
      });
    }
    int before = magpie::procs();
    for (int procs : {1, 4, 2, 8, 1}) {
      int old = magpie::set_procs(procs);  // waits until every running goroutine has paused once
      if (old != before || magpie::procs() != procs) ++failures;
      std::printf("procs %d -> %d after %d turns\n", old, procs, turns.load());
      before = procs;
      for (int i = 0; i < 3; ++i) magpie::yield();
    }
    all.wait();
  });

  std::printf("%d turns, %d expected\n", turns.load(), kGoroutines * kYields);
  return turns == kGoroutines * kYields && failures == 0 ? 0 : 1;
}
