// Two goroutines fault at the same time: the second does not end the program before the stack of
// the first is printed.
// expect: ^magpie: goroutine [0-9]+ \(doomed\) ends the program by SIGSEGV, at address 0x10$
// expect: ^    at .
// exit: SIGSEGV
#include <magpie/magpie.h>

#include <atomic>

int main() {
  std::atomic<int> ready{0};
  magpie::run(magpie::Options{.procs = 2}, [&] {
    magpie::WaitGroup never;
    never.add(1);
    for (int i = 0; i < 2; ++i) {
      magpie::go(magpie::GoOptions{.name = "doomed"}, [&] {
        ++ready;
        while (ready < 2) magpie::yield();
        *reinterpret_cast<volatile int*>(0x10) = 1;
      });
    }
    never.wait();
  });
}
