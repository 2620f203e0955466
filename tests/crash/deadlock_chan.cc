// expect: all goroutines are asleep - deadlock!
// exit: 2
// expect: goroutine 1 \[chan receive\]
// expect: goroutine [0-9]+ \(sender\) \[chan send\], started by goroutine 1
// expect: goroutine [0-9]+ \(selector\) \[select\], started by goroutine 1
// expect: goroutine [0-9]+ \(nobody\) \[select \(no cases\)\], started by goroutine 1
// expect: goroutine [0-9]+ \(nil\) \[chan receive \(nil chan\)\], started by goroutine 1
//
// Everybody waits at a channel of their own.
#include <magpie/magpie.h>

int main() {
  using namespace magpie;
  run([] {
    Chan<int> a, b, c;
    go(GoOptions{.name = "sender"}, [&] { b.send(1); });
    go(GoOptions{.name = "selector"}, [&] { select(on_recv(c), on_recv(c)); });
    go(GoOptions{.name = "nobody"}, [] { select(); });
    go(GoOptions{.name = "nil"}, [] { (void)Chan<int>::nil().recv(); });
    (void)a.recv();
  });
}
