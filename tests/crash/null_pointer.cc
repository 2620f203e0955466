// A fault that is no overflow stays an ordinary segmentation fault, with nothing said about stacks.
// expect: ^about to fault$
// exit: SIGSEGV
#include <magpie/magpie.h>

#include <cstdio>

int main() {
  magpie::run([] {
    magpie::spawn([] {
      std::puts("about to fault");
      std::fflush(stdout);
      volatile int* volatile nowhere = nullptr;
      *nowhere = 1;
    }).join();
  });
}
