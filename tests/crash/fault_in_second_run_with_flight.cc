// The flight recorder stays on from one run() to the next, and its handlers do not call those of
// the runtime for ever.
// expect: ^magpie: goroutine [0-9]+ \(doomed\) ends the program by SIGSEGV, at address 0x10$
// exit: SIGSEGV
#include <magpie/magpie.h>
#include <unistd.h>

int main() {
  alarm(60);
  magpie::run([] { magpie::trace::start("/dev/null", {.flight = true}); });
  magpie::run([] {
    magpie::WaitGroup never;
    never.add(1);
    magpie::go(magpie::GoOptions{.name = "doomed"},
               [] { *reinterpret_cast<volatile int*>(0x10) = 1; });
    never.wait();
  });
}
