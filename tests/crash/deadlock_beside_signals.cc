// expect: all goroutines are asleep - deadlock!
// exit: 2
// expect: goroutine 1 \[chan receive\]
//
// Signals are caught, and one was received, but nobody waits for the next.
#include <magpie/magpie.h>

int main() {
  using namespace magpie;
  Signals signals({SIGTERM, SIGHUP});
  run([&] {
    raise(SIGHUP);
    (void)signals.channel().recv();
    (void)Chan<int>().recv();
  });
}
