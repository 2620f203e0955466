// signals.cc: a program that works until it is told to end, and then finishes what it has begun.
//
// Without an argument it sends itself what an operator would: a SIGHUP, then a SIGTERM.
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

using namespace magpie;
using namespace std::chrono_literals;

int main(int argc, char**) {
  const bool by_itself = argc == 1;
  Signals signals({SIGTERM, SIGINT, SIGHUP});
  return run([&] {
    constexpr int kWorkers = 3;
    std::atomic<int> finished{0};
    Context work = Context::background().with_cancel();
    WaitGroup workers;
    for (int i = 0; i < kWorkers; ++i) {
      workers.go([&] {
        while (!work.cancelled()) sleep_for(1ms);  // a piece of work
        ++finished;
      });
    }

    int reloads = 0;
    if (by_itself) kill(getpid(), SIGHUP);
    for (int signal : signals.channel()) {
      if (signal != SIGHUP) break;
      std::puts("reading the configuration again");
      ++reloads;
      if (by_itself) kill(getpid(), SIGTERM);
    }
    work.cancel();
    workers.wait();
    std::printf("%d workers have finished\n", finished.load());
    return finished == kWorkers && (reloads == 1 || !by_itself) ? 0 : 1;
  });
}
