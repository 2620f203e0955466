// A handler of uncaught exceptions that throws itself terminates the program.
// expect: terminate called
// exit: SIGABRT
#include <magpie/magpie.h>

#include <stdexcept>

int main() {
  magpie::on_uncaught([](std::exception_ptr) { throw std::runtime_error("worse"); });
  magpie::run([] {
    magpie::WaitGroup never;
    never.add(1);
    magpie::go([] { throw 1; });
    never.wait();
  });
}
