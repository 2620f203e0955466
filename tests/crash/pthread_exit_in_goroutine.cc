// A goroutine that ends the thread it happens to run on is told what to do instead.
// expect: magpie: goroutine [0-9]+: pthread_exit\(\) or pthread_cancel\(\) on a thread of the runtime, .*let the goroutine return
// exit: SIGABRT
#include <magpie/magpie.h>
#include <pthread.h>

int main() {
  magpie::run(magpie::Options{.procs = 2},
              [] { magpie::spawn([] { pthread_exit(nullptr); }).join(); });
}
