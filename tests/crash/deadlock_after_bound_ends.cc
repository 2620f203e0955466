// The last goroutines that run end with a ThreadLock, and their threads with them: a thread that
// ends looks for a deadlock no more, and is still there when another one looks.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>

#include <memory>

int main() {
  magpie::run([] {
    magpie::Chan<int> gate;
    std::unique_ptr<magpie::ThreadLock> locks[5];  // destroyed by nobody
    magpie::WaitGroup all_wait;
    for (auto& lock : locks) {
      all_wait.add(1);
      magpie::go([&] {
        lock = std::make_unique<magpie::ThreadLock>();
        all_wait.done();
        (void)gate.recv();
      });
    }
    all_wait.wait();
    gate.close();
    (void)magpie::Chan<int>().recv();
  });
}
