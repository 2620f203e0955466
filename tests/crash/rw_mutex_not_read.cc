// expect: ^magpie: goroutine 0 unlocks an RWMutex for reading that no reader holds$
// exit: SIGABRT
#include <magpie/magpie.h>

int main() {
  magpie::RWMutex mutex;  // on a plain thread: goroutine 0
  mutex.lock();
  mutex.unlock_shared();  // a writer holds it
}
