// patterns.cc: a worker pool, a rate limit and a circuit breaker.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>

using namespace magpie;
using namespace std::chrono_literals;

int main() {
  run([] {
    // Four workers, at most 16 jobs in the queue: submit() waits when it is full, try_submit()
    // refuses.
    std::atomic<int> done{0};
    WorkerPool pool(4, 16);
    for (int i = 0; i < 100; ++i) pool.submit([&done] { ++done; });
    pool.wait();
    std::printf("jobs done: %d\n", done.load());

    // 1000 a second, 5 at once.
    RateLimiter limiter(1000, 5);
    int at_once = 0;
    while (limiter.allow()) ++at_once;
    limiter.wait();
    std::printf("at once: %d or a few more, then one per millisecond\n", at_once < 5 ? at_once : 5);

    // After three failures in a row it does not even try.
    CircuitBreaker breaker({.failures = 3, .open_for = 1ms, .trials = 1});
    for (int i = 0; i < 5; ++i) {
      try {
        breaker.call([] { throw std::runtime_error("no answer"); });
      } catch (const CircuitOpen&) {
        std::puts("not tried");
      } catch (const std::exception& error) {
        std::printf("failed: %s\n", error.what());
      }
    }
    sleep_for(2ms);
    breaker.call([] { std::puts("tried again, and it works"); });
  });
}
