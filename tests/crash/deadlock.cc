// expect: all goroutines are asleep - deadlock!
// exit: 2
// expect: goroutine 1 \[WaitGroup wait\]
// expect: goroutine [0-9]+ \(waiter\) \[WaitGroup wait\], started by goroutine 1
//
// Everybody waits for somebody else, and no other thread could wake them.
#include <magpie/magpie.h>

int main() {
  magpie::run([] {
    magpie::WaitGroup never;
    never.add(1);
    magpie::go(magpie::GoOptions{.name = "waiter"}, [&never] { never.wait(); });
    never.wait();
  });
}
