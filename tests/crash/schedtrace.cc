// MAGPIE_DEBUG=schedtrace prints Go's line, with ours behind it.
// expect: ^SCHED [0-9]+ms: gomaxprocs=2 idleprocs=[0-2] threads=[0-9]+ spinningthreads=[0-9]+ needspinning=[01] idlethreads=[0-9]+ runqueue=[0-9]+ \[ [0-9]+ [0-9]+ \] schedticks=\[ [0-9]+ [0-9]+ \] steal=[0-9]+/[0-9]+/[0-9]+ .*handoff=[0-9]+ preempt=[0-9]+ without_p=[0-9]+ valve=0$
// exit: 0
#include <magpie/magpie.h>

#include <cstdlib>

int main() {
  setenv("MAGPIE_DEBUG", "schedtrace=10", 1);
  magpie::run(magpie::Options{.procs = 2}, [] {
    for (int i = 0; i < 100; ++i) magpie::sleep_for(std::chrono::milliseconds(1));
  });
}
