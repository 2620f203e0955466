// What main throws leaves run() as it is; if nobody catches it there the program terminates as any
// other.
// expect: terminate called after throwing an instance of 'std::out_of_range'
// expect: what\(\):  the end of the world
// exit: SIGABRT
#include <magpie/magpie.h>

#include <stdexcept>

int main() {
  magpie::run([] {
    magpie::yield();
    throw std::out_of_range("the end of the world");
  });
}
