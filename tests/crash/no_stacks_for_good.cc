// When the system gives no more memory for stacks and nothing else can run, the program says what
// to do and ends.
// expect: no memory for another goroutine stack of 262144 bytes
// expect: ^magpie: no memory for a goroutine stack of 262144 bytes, and nothing else can run
// expect: Options::stack_size
// exit: SIGABRT
#include <magpie/magpie.h>

#include "support/os_faults.h"

int main() {
  magpie::run(magpie::Options{.procs = 2}, [] {
    magpie::support::MapFaults refuse(magpie::support::Refuse::stacks);
    magpie::WaitGroup never;
    never.add(1);
    for (int i = 0; i < 2000; ++i) magpie::go([&never] { never.wait(); });
    never.wait();
  });
}
