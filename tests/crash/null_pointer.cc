// A fault that is no overflow stays an ordinary segmentation fault; its goroutine and place are
// named.
// expect: ^magpie: goroutine [0-9]+ ends the program by SIGSEGV, at address \(nil\)$
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
