// A goroutine ends with its ThreadLock, so its thread ends too, and takes its time over a
// thread_local that does not use the runtime.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>

#include <chrono>
#include <thread>

namespace {
struct Farewell {
  ~Farewell() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }
  bool is_there = false;
};
thread_local Farewell farewell;
}  // namespace

int main() {
  magpie::run([] {
    magpie::ThreadLock main_is_on_another;
    magpie::go([] {
      new magpie::ThreadLock;
      farewell.is_there = true;
    });
    (void)magpie::Chan<int>().recv();
  });
}
