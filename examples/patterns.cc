// patterns.cc: a worker pool, a rate limit and a circuit breaker.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>

using namespace magpie;
using namespace std::chrono_literals;

int main() {
  return run([] {
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
    int failed = 0, not_tried = 0;
    for (int i = 0; i < 5; ++i) {
      try {
        breaker.call([] { throw std::runtime_error("no answer"); });
      } catch (const CircuitOpen&) {
        ++not_tried;
      } catch (const std::exception& error) {
        std::printf("failed: %s\n", error.what());
        ++failed;
      }
    }
    std::printf("%d were not tried\n", not_tried);
    sleep_for(2ms);
    const bool works = breaker.call([] { return true; });
    std::printf("tried again: it %s\n", works ? "works" : "fails");
    // On a slow machine the breaker's pause may be over before the five calls are.
    const bool broke = failed >= 3 && failed + not_tried == 5;
    return done == 100 && at_once >= 5 && broke && works ? 0 : 1;
  });
}
