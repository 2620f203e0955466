// An exception that leaves a goroutine ends the program with the goroutine's number, name and
// what().
// expect: ^magpie: goroutine [0-9]+ \(fetcher\) ended by an uncaught exception: out of cheese$
// exit: SIGABRT
#include <magpie/magpie.h>

#include <stdexcept>

int main() {
  magpie::run([] {
    magpie::WaitGroup never;
    never.add(1);
    magpie::go(magpie::GoOptions{.name = "fetcher"}, [] {
      magpie::yield();
      throw std::runtime_error("out of cheese");
    });
    never.wait();
  });
}
