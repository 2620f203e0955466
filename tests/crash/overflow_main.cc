// Main is goroutine 1 and its stack has the size that Options say.
// expect: ^magpie: goroutine 1 overflowed its stack of 65536 bytes
// exit: SIGABRT
#include "overflow.h"

int main() {
  magpie::run(magpie::Options{.stack_size = 64 * 1024}, [] { recurse_for_ever(0); });
}
