// A plain thread has woken a goroutine. It ends when all goroutines wait, and nobody can wake them
// any more.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>

#include <thread>

int main() {
  magpie::run([] {
    magpie::Chan<int> values;
    std::thread([values] {
      values.send(1);
      while (magpie::stats().idle_procs != magpie::procs()) std::this_thread::yield();
    }).detach();
    (void)values.recv();
    (void)values.recv();
  });
}
