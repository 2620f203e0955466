// Knows Magpie only by its public header: a thousand goroutines add up their numbers.

#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <cstring>

int main() {
  constexpr int kGoroutines = 1000;
  std::atomic<long> sum{0};

  magpie::run(magpie::Options{.procs = 2}, [&] {
    magpie::WaitGroup all_done;
    for (int i = 1; i <= kGoroutines; ++i) {
      all_done.add(1);
      magpie::go([&, i] {
        magpie::yield();
        sum.fetch_add(i, std::memory_order_relaxed);  // wait() orders it before the read
        all_done.done();
      });
    }
    all_done.wait();
  });

  const long expected = kGoroutines * (kGoroutines + 1L) / 2;
  if (std::strcmp(magpie::version(), MAGPIE_VERSION_STRING) != 0) {
    std::fprintf(stderr, "headers of %s, a library of %s\n", MAGPIE_VERSION_STRING,
                 magpie::version());
    return 1;
  }
  if (sum.load() != expected) {
    std::fprintf(stderr, "sum is %ld, expected %ld\n", sum.load(), expected);
    return 1;
  }
  std::printf("sum is %ld\n", sum.load());
  return 0;
}
