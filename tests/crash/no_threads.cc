// The message that a thread is refused counts those that are there: here only the one that called
// run().
// expect: ^magpie: no new thread for an idle processor: .*; going on with 1$
// exit: 3
#include <magpie/magpie.h>

#include <cstdlib>

#include "support/os_faults.h"

int main() {
  magpie::support::ThreadFaults refuse_all_but_sysmon(0, 1);
  magpie::run(magpie::Options{.procs = 2}, [] {
    magpie::WaitGroup group;
    for (int i = 0; i < 100; ++i) group.go([] { magpie::yield(); });
    group.wait();
    std::_Exit(3);
  });
}
