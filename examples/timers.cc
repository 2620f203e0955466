// timers.cc: sleeps, time-outs, functions called later, regular ticks.
#include <magpie/magpie.h>

#include <chrono>
#include <cstdio>

using namespace magpie;
using namespace std::chrono_literals;

int main() {
  return run([] {
    const TimePoint start = std::chrono::steady_clock::now();
    sleep_for(5ms);

    // A channel that receives the time once: a time-out in select.
    Chan<int> answers;
    Chan<TimePoint> too_late = after(10ms);
    select(on_recv(answers, [](std::optional<int>) { std::puts("an answer"); }),
           on_recv(too_late, [](std::optional<TimePoint>) { std::puts("no answer in 10 ms"); }));

    // A function that is called later, in a goroutine of its own, unless it is stopped before.
    Chan<void> called;
    after_func(2ms, [called] { called.send(); });
    called.recv();
    Timer never = after_func(1h, [] { std::puts("an hour later"); });
    const bool stopped = never.stop();
    std::printf("stopped in time: %s\n", stopped ? "yes" : "no");

    // Regular ticks. Those that nobody receives in time are left out.
    Ticker ticker(3ms);
    for (int i = 1; i <= 3; ++i) {
      ticker.channel().recv();
      std::printf("tick %d\n", i);
    }
    const auto took =
        std::chrono::steady_clock::now() - start;  // at least the sum of what was waited for
    return stopped && took >= 5ms + 10ms + 2ms + 3 * 3ms ? 0 : 1;
  });
}
