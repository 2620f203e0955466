// task_group.cc: several goroutines for one result: all of them, or the first failure.
#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

int main() {
  return run([] {
    // All succeed: wait() returns when the last one has ended. At most two run at a time.
    std::array<int, 5> squares{};
    std::atomic<int> working{0}, too_many{0};
    TaskGroup group;
    group.set_limit(2);
    for (int i = 0; i < 5; ++i) {
      group.go([&, i] {
        if (++working > 2) ++too_many;
        yield();
        squares[static_cast<std::size_t>(i)] = i * i;
        --working;
      });
    }
    group.wait();
    for (int square : squares) std::printf("%d ", square);
    std::puts("");
    bool right = squares == std::array{0, 1, 4, 9, 16} && too_many == 0;

    // The same with results, in the order of go().
    ResultGroup<int> cubes;
    for (int i = 0; i < 5; ++i) cubes.go([i] { return i * i * i; });
    int sum = 0;
    for (int cube : cubes.wait()) sum += cube;
    std::printf("the sum of the cubes is %d\n", sum);
    right = right && sum == 100;

    // One fails: the others are told through the context, and wait() throws what it threw.
    group.set_limit(0);
    std::atomic<int> gave_up{0};
    for (int i = 0; i < 3; ++i) {
      group.go([&, i](const Context& context) {
        context.done().recv();
        std::printf("goroutine %d gives up\n", i);
        ++gave_up;
      });
    }
    group.go([] { throw std::runtime_error("disk on fire"); });
    try {
      group.wait();
    } catch (const std::exception& error) {
      std::printf("failed: %s\n", error.what());
      return right && gave_up == 3 && error.what() == std::string("disk on fire") ? 0 : 1;
    }
    return 1;
  });
}
