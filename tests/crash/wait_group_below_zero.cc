// done() too often is the caller's bug and says so.
// expect: ^magpie: goroutine [0-9]+ ended by an uncaught exception: magpie: WaitGroup count below zero: more done\(\) than add\(\)$
// exit: SIGABRT
#include <magpie/magpie.h>

int main() {
  magpie::run([] {
    magpie::WaitGroup group, never;
    never.add(1);
    magpie::go([&] { group.done(); });
    never.wait();
  });
}
