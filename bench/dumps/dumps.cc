// dumps.cc: dumps beside many parked goroutines: bench_dumps [PARKED] [DUMPS] [PROCS].
//
// For each dump it prints how long it took, folded, and for how long a goroutine that yields all
// the time was held up meanwhile at most; first the same without a dump. With "abort" instead of
// the number of dumps the program ends by SIGABRT, for the core file that `magpie dump` reads.
#include <magpie/dump.h>
#include <magpie/magpie.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Clock = std::chrono::steady_clock;

double ms(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

[[gnu::noinline]] void park(magpie::Chan<int> nothing) {
  (void)nothing.recv();
  asm volatile("");  // not a tail call
}

// Notes the longest time between two of its turns.
class Yielder {
 public:
  void run() {
    for (auto last = Clock::now(); !is_over_;) {
      magpie::yield();
      const auto now = Clock::now();
      longest_ = std::max(longest_.load(), now - last);
      last = now;
    }
  }
  Clock::duration take_longest() { return longest_.exchange(Clock::duration::zero()); }
  void end() { is_over_ = true; }

 private:
  std::atomic<Clock::duration> longest_{Clock::duration::zero()};
  std::atomic<bool> is_over_{false};
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t parked = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const bool aborts = argc > 2 && std::strcmp(argv[2], "abort") == 0;
  const int dumps = argc > 2 ? std::atoi(argv[2]) : 10;
  magpie::run(magpie::Options{.procs = argc > 3 ? std::atoi(argv[3]) : 2}, [&] {
    magpie::Chan<int> nothing;
    for (std::size_t i = 0; i < parked; ++i) {
      magpie::go([nothing] { park(nothing); });
      if (i % 1'000 == 0) magpie::yield();
    }
    while (magpie::stats().waiting < parked) magpie::sleep_for(std::chrono::milliseconds(10));
    if (aborts) std::abort();
    Yielder yielder;
    auto yields = magpie::spawn([&] { yielder.run(); });
    for (int i = 0; i <= dumps; ++i) {
      magpie::sleep_for(std::chrono::milliseconds(100));
      (void)yielder.take_longest();
      const auto begin = Clock::now();
      if (i == 0) {
        magpie::sleep_for(std::chrono::milliseconds(400));
      } else {
        (void)magpie::dump_goroutines();
      }
      const auto took = Clock::now() - begin;
      std::printf("%s %.0f ms, held up for %.3f ms\n", i == 0 ? "no dump for" : "a dump took",
                  ms(took), ms(yielder.take_longest()));
    }
    yielder.end();
    yields.join();
    nothing.close();
  });
}
