// exit() in a goroutine runs atexit handlers and static destructors, and its code is the program's.
// expect: ^handler ran$
// expect: ^static destroyed$
// exit: 7
#include <magpie/magpie.h>

#include <cstdio>
#include <cstdlib>

namespace {
struct Static {
  ~Static() { std::puts("static destroyed"); }
} keep;
}  // namespace

int main() {
  std::atexit([] { std::puts("handler ran"); });
  magpie::run(magpie::Options{.procs = 4}, [] {
    for (int i = 0; i < 100; ++i) {
      magpie::go([] {
        for (;;) magpie::yield();
      });
    }
    magpie::spawn([] {
      for (int i = 0; i < 50; ++i) magpie::yield();
      std::exit(7);
    }).join();
  });
}
