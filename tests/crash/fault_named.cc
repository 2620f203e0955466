// A fatal signal says which goroutine it is, and where.
// expect: ^magpie: goroutine [0-9]+ \(doomed\) ends the program by SIGSEGV, at address 0x10$
// expect: ^    at .
// exit: SIGSEGV
#include <magpie/magpie.h>

int main() {
  magpie::run([] {
    magpie::WaitGroup never;
    never.add(1);
    magpie::go(magpie::GoOptions{.name = "doomed"}, [] {
      magpie::yield();
      *reinterpret_cast<volatile int*>(0x10) = 1;
    });
    never.wait();
  });
}
