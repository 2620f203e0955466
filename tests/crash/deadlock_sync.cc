// expect: all goroutines are asleep - deadlock!
// exit: 2
// expect: goroutine 1 \[Mutex lock\]
// expect: goroutine [0-9]+ \(reader\) \[RWMutex lock_shared\]
// expect: goroutine [0-9]+ \(writer\) \[RWMutex lock\]
// expect: goroutine [0-9]+ \(cond\) \[CondVar wait\]
// expect: goroutine [0-9]+ \(semaphore\) \[Semaphore acquire\]
// expect: goroutine [0-9]+ \(once\) \[Once call\]
//
// Each waits for something that will not happen; the report says for what.
#include <magpie/magpie.h>

int main() {
  magpie::run([] {
    magpie::Mutex mutex, other;
    magpie::RWMutex rw_mutex;
    magpie::CondVar changed;
    magpie::Semaphore semaphore(0);
    magpie::Once once;
    mutex.lock();
    rw_mutex.lock();
    magpie::go([&] { once.call([&] { mutex.lock(); }); });
    auto start = [](const char* name, auto wait) {
      magpie::go(magpie::GoOptions{.name = name}, wait);
      for (int i = 0; i < 10; ++i) magpie::yield();
    };
    start("reader", [&] { rw_mutex.lock_shared(); });
    start("writer", [&] { rw_mutex.lock(); });
    start("cond", [&] {
      other.lock();
      changed.wait(other);
    });
    start("semaphore", [&] { semaphore.acquire(); });
    start("once", [&] { once.call([] {}); });
    mutex.lock();
  });
}
