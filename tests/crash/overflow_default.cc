// A goroutine without a name that recurses for ever says who it was, how large its stack is, and
// what to do.
// expect: ^magpie: goroutine [0-9]+ overflowed its stack of 262144 bytes
// expect: go\(GoOptions\{\.stack_size = 1048576\}, \.\.\.\)
// expect: Options::stack_size
// exit: SIGABRT
#include "overflow.h"

int main() {
  magpie::run([] { magpie::spawn(recurse_for_ever, 0).join(); });
}
