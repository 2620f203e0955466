// The last goroutine that begins to wait has a ThreadLock: its thread waits in place and does not
// go through the loop.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>

int main() {
  magpie::run(magpie::Options{.procs = 1}, [] {
    magpie::ThreadLock stay;
    (void)magpie::Chan<int>().recv();
  });
}
