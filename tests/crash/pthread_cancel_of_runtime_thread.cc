// Whoever cancels a thread of the runtime is told that it is not theirs; a goroutine in a blocking
// call, too, is unwound.
// expect: ^unwound$
// expect: magpie: goroutine [0-9]+: pthread_exit\(\) or pthread_cancel\(\) on a thread of the runtime
// exit: SIGABRT
#include <magpie/magpie.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

namespace {
struct Guard {
  ~Guard() {
    std::puts("unwound");
    std::fflush(stdout);
  }
};
}  // namespace

int main() {
  magpie::run(magpie::Options{.procs = 2}, [] {
    magpie::WaitGroup group;
    group.go([] {
      Guard guard;
      std::jthread canceller([self = pthread_self()] { pthread_cancel(self); });
      magpie::blocking([] { pause(); });
    });
    group.wait();
  });
}
