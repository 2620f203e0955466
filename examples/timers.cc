// timers.cc: sleeps, time-outs, functions called later, regular ticks.
#include <magpie/magpie.h>

#include <cstdio>

using namespace magpie;
using namespace std::chrono_literals;

int main() {
  run([] {
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
    std::printf("stopped in time: %s\n", never.stop() ? "yes" : "no");

    // Regular ticks. Those that nobody receives in time are left out.
    Ticker ticker(3ms);
    for (int i = 1; i <= 3; ++i) {
      ticker.channel().recv();
      std::printf("tick %d\n", i);
    }
  });
}
