// A goroutine that was parked and resumed, among others, overflows: the message is about that one.
// expect: ^magpie: goroutine [0-9]+ \(the one\) overflowed its stack of 262144 bytes
// exit: SIGABRT
#include "overflow.h"

int main() {
  magpie::run(magpie::Options{.procs = 4}, [] {
    for (int i = 0; i < 20; ++i) {
      magpie::go(magpie::GoOptions{.name = "another"}, [] {
        for (;;) magpie::yield();
      });
    }
    magpie::spawn(magpie::GoOptions{.name = "the one"}, [] {
      for (int i = 0; i < 100; ++i) magpie::yield();
      recurse_for_ever(0);
    }).join();
  });
}
