// yield_in_loop.cc: a long loop that gives way by itself.
//
// The runtime stops loops after their time slice. A loop that calls yield() every now and then lets
// others run sooner, and needs no signal. Here preemption is off and there is one P, so yield() is
// all there is: without it the other goroutine would not run before the loop has ended.
#include <magpie/magpie.h>

#include <cstdint>
#include <cstdio>

int main() {
  constexpr int kSteps = 1'000'000, kStepsPerTurn = 10'000;
  std::uint64_t sum = 0;
  int turns_of_the_other = 0;

  magpie::run(magpie::Options{.procs = 1, .preempt = false}, [&] {
    bool loop_is_over = false;  // with one P, and no wait between, a plain bool will do
    magpie::JoinHandle<void> other = magpie::spawn([&] {
      while (!loop_is_over) {
        ++turns_of_the_other;
        magpie::yield();
      }
    });
    for (int i = 0; i < kSteps; ++i) {
      sum += static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(i) % 7;
      if (i % kStepsPerTurn == 0) magpie::yield();
    }
    loop_is_over = true;
    other.join();
  });

  std::printf("the other goroutine had %d turns during the loop (sum %llu)\n", turns_of_the_other,
              static_cast<unsigned long long>(sum));
  return turns_of_the_other >= kSteps / kStepsPerTurn / 2 ? 0 : 1;
}
