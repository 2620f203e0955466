// A plain thread stays, but it promises to wake nobody, when all goroutines wait already.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>
#include <unistd.h>

#include <thread>

int main() {
  magpie::run([] {
    magpie::Chan<int> values;
    std::thread([values] {
      values.send(1);
      while (magpie::stats().idle_procs != magpie::procs()) std::this_thread::yield();
      magpie::Bystander nobody_waits_for_me;
      for (;;) pause();
    }).detach();
    (void)values.recv();
    (void)values.recv();
  });
}
