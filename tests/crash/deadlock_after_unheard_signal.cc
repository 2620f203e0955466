// Signals come that no goroutine waits for. The thread that delivers them to many channels is busy
// with that when main begins to wait.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

int main() {
  using namespace magpie;
  std::vector<Signals> unheard;
  for (int i = 0; i < 5'000; ++i) unheard.emplace_back(Signals({SIGHUP}));
  run([] {
    std::atomic<bool> has_begun{false};
    std::thread([&has_begun] {
      Bystander sender;
      for (int i = 0; i < 1'000; ++i) {
        kill(getpid(), SIGHUP);
        has_begun = true;
        std::this_thread::yield();
      }
      for (;;) pause();
    }).detach();
    while (!has_begun) yield();
    (void)Chan<int>().recv();
  });
}
