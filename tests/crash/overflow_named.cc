// A goroutine with a name and a stack size of its own that overflows is called by its name.
// expect: ^magpie: goroutine [0-9]+ \(deep thought\) overflowed its stack of 131072 bytes
// expect: go\(GoOptions\{\.stack_size = 524288\}, \.\.\.\)
// exit: SIGABRT
#include "overflow.h"

int main() {
  magpie::run([] {
    magpie::WaitGroup never;
    never.add(1);
    magpie::go(magpie::GoOptions{.name = "deep thought", .stack_size = 128 * 1024},
               recurse_for_ever, 0);
    never.wait();
  });
}
