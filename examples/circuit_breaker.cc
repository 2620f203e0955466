// circuit_breaker.cc: a service that is down is left alone for a while.
//
// After three failures in a row the breaker opens: callers are refused at once, and the service is
// not called at all. After a pause one call is let through; if it succeeds, all are again.
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>

using namespace std::chrono_literals;

int main() {
  return magpie::run([] {
    std::atomic<int> called = 0;
    std::atomic<bool> down = true;
    auto service = [&] {
      ++called;
      if (down) throw std::runtime_error("no answer");
      return 42;
    };

    constexpr auto kPause = 200ms;
    magpie::CircuitBreaker breaker({.failures = 3, .open_for = kPause, .trials = 1});
    int failed = 0, refused = 0;
    while (refused < 100) {  // many requests come in
      try {
        breaker.call(service);
      } catch (const magpie::CircuitOpen&) {
        ++refused;  // quick, and no load on the service
      } catch (const std::runtime_error&) {
        ++failed;
      }
    }
    std::printf("%d failed, %d refused, %d calls of the service\n", failed, refused, called.load());
    // A slow machine may need more than the pause for a hundred refusals: then one more was tried.
    bool right = failed >= 3 && failed < 50 && called == failed;

    down = false;
    magpie::sleep_for(kPause + 1ms);
    right = right && breaker.call(service) == 42;
    right = right && breaker.state() == magpie::CircuitBreaker::State::closed;
    std::printf("after the pause it works again\n");
    return right ? 0 : 1;
  });
}
