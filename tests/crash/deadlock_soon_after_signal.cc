// Main waits for a signal, and that is no deadlock. Soon after the signal main waits for what never
// comes, and that is one. A plain thread has come in before, and is gone.
// expect: all goroutines are asleep - deadlock!
// expect: goroutine 1 \[chan receive\]
// exit: 2
#include <magpie/magpie.h>
#include <sys/time.h>

#include <thread>

int main() {
  using namespace magpie;
  run([] {
    Chan<int> values;
    std::thread sender([values] { values.send(1); });
    (void)values.recv();
    blocking([&sender] { sender.join(); });
    Signals signals({SIGALRM});
    const itimerval soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 2'000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    (void)signals.channel().recv();
    (void)values.recv();
  });
}
