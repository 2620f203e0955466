// heavy_and_light.cc: tasks that compute for long, and many short ones, on one P.
//
// The heavy ones begin first and never give way. The runtime stops them when their time slice is
// over, so the light ones are all done while the heavy ones still compute. Without preemption this
// program would not end: the heavy ones compute until the last light one is done.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>

int main() {
  constexpr int kHeavy = 3, kLight = 1000;
  std::atomic<int> light_done = 0, heavy_begun = 0, light_done_first = 0;

  magpie::Stats stats = magpie::run(magpie::Options{.procs = 1}, [&] {
    magpie::WaitGroup all;
    for (int i = 0; i < kHeavy; ++i) {
      all.go([&] {
        ++heavy_begun;
        while (light_done.load(std::memory_order_relaxed) < kLight) {  // computes
        }
        ++light_done_first;
      });
    }
    while (heavy_begun == 0) magpie::yield();
    for (int i = 0; i < kLight; ++i) all.go([&] { ++light_done; });
    all.wait();
    return magpie::stats();
  });

  std::printf("%d light ones done before %d heavy ones; %llu preemptions\n", light_done.load(),
              light_done_first.load(), static_cast<unsigned long long>(stats.total.preemptions));
  return light_done == kLight && light_done_first == kHeavy && stats.total.preemptions > 0 ? 0 : 1;
}
