// Two goroutines each wait for the mutex that the other holds: the report names the cycle, and
// shows where each waits.
// expect: all goroutines are asleep - deadlock!
// expect: ^magpie: goroutine [0-9]+ waits for Mutex 0x[0-9a-f]+ held by goroutine [0-9]+, which waits for Mutex 0x[0-9a-f]+ held by goroutine [0-9]+: a cycle
// expect: goroutine [0-9]+ \(left\) \[Mutex lock\], started by goroutine 1, on Mutex 0x[0-9a-f]+ held by goroutine [0-9]+
// expect: ^    at .
// exit: 2
#include <magpie/magpie.h>

int main() {
  magpie::run([] {
    magpie::Mutex a, b;
    magpie::WaitGroup both_hold_one, done;
    both_hold_one.add(2);
    done.add(1);
    auto take = [&](const char* name, magpie::Mutex& first, magpie::Mutex& second) {
      magpie::go(magpie::GoOptions{.name = name}, [&] {
        first.lock();
        both_hold_one.done();
        both_hold_one.wait();
        second.lock();
      });
    };
    take("left", a, b);
    take("right", b, a);
    done.wait();
  });
}
