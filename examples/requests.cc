// requests.cc: ten thousand simulated requests, each with a database call of some milliseconds.
//
// Look at the last line: waiting costs nothing, so ten thousand wait at the same time, and the
// whole takes little longer than the slowest of them.
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdio>

int main() {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  constexpr int kRequests = 10'000;
  return magpie::run([] {
    std::atomic<int> answered = 0;
    std::atomic<long> waited_ms = 0;
    const auto start = Clock::now();
    magpie::WaitGroup all;
    for (int i = 0; i < kRequests; ++i) {
      all.go([&, i] {
        const auto call = 10ms + 1ms * (i % 20);
        magpie::sleep_for(call);  // the database works
        waited_ms += call.count();
        ++answered;
      });
    }
    all.wait();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    std::printf("%d requests waited %ld ms together; all took %ld ms, on %d threads\n",
                answered.load(), waited_ms.load(), static_cast<long>(took.count()),
                magpie::num_threads());
    return answered == kRequests && took.count() < waited_ms / 20 ? 0 : 1;
  });
}
