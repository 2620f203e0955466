// A plain thread that promised to wake nobody looks at statistics without pause.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>

#include <thread>

int main() {
  magpie::run([] {
    std::thread([] {
      magpie::Bystander nobody_waits_for_me;
      for (;;) (void)magpie::stats();
    }).detach();
    (void)magpie::Chan<int>().recv();
  });
}
