// Unlocking a mutex that nobody holds is the caller's bug, and what it protects may be broken
// already.
// expect: ^magpie: goroutine 1 unlocks a Mutex that nobody holds$
// exit: SIGABRT
#include <magpie/magpie.h>

int main() {
  magpie::run([] {
    magpie::Mutex mutex;
    mutex.lock();
    mutex.unlock();
    mutex.unlock();
  });
}
