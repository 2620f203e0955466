// million.cc: a million goroutines.
//
// A goroutine that has not run yet is a record of 128 bytes with its closure inside: no stack, no
// allocation of its own. It gets a stack when it first blocks, and most never do.
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>

int main() {
  constexpr std::uint64_t kGoroutines = 1'000'000;
  using Clock = std::chrono::steady_clock;

  std::atomic<std::uint64_t> sum = 0;
  auto start = Clock::now();
  magpie::run([&] {
    magpie::WaitGroup all;
    all.add(kGoroutines);
    for (std::uint64_t i = 1; i <= kGoroutines; ++i) {
      magpie::go([&, i] {
        sum.fetch_add(i, std::memory_order_relaxed);  // relaxed: wait() orders it before the read
        all.done();
      });
    }
    all.wait();
  });
  std::chrono::duration<double, std::milli> took = Clock::now() - start;

  std::printf("%llu goroutines, started and ended, in %.0f ms\n",
              static_cast<unsigned long long>(kGoroutines), took.count());
  return sum == kGoroutines * (kGoroutines + 1) / 2 ? 0 : 1;
}
