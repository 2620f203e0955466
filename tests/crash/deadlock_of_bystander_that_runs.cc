// The thread that calls run() has promised to wake nobody. Inside run() it is one of the runtime's.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>

int main() {
  magpie::Bystander nobody_waits_for_me;
  magpie::run([] { (void)magpie::Chan<int>().recv(); });
}
