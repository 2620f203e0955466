// A plain thread that ends uses the runtime once more in the destructor of a thread_local, and
// takes its time over it.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>

#include <chrono>
#include <thread>

namespace {
struct Farewell {
  ~Farewell() {
    values.send(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  magpie::Chan<int> values;
};
}  // namespace

int main() {
  magpie::run([] {
    magpie::Chan<int> values;
    std::thread([values] {
      thread_local Farewell farewell{values};
      values.send(1);
    }).detach();
    for (int i = 0; i < 3; ++i) (void)values.recv();
  });
}
