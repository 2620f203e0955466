// expect: ^magpie: goroutine 1 unlocks an RWMutex that no writer holds$
// exit: SIGABRT
#include <magpie/magpie.h>

int main() {
  magpie::run([] {
    magpie::RWMutex mutex;
    mutex.lock_shared();
    mutex.unlock();  // a reader holds it
  });
}
