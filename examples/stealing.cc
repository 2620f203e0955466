// stealing.cc: a thousand tasks that compute, all born on one P.
//
// The P that starts them has them in its queue; the other Ps have nothing to do and steal half of
// that queue. What does not fit there is in the global queue, where they take it too. Look at the
// shares: no P did everything.
#include <magpie/magpie.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

std::uint64_t compute(std::uint64_t x) {
  for (int i = 0; i < 100'000; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
  return x;
}

bool all_took_part(const magpie::Stats& stats) {
  return stats.total.goroutines_stolen > 0 &&
         std::all_of(stats.procs.begin(), stats.procs.end(),
                     [](const magpie::ProcStats& p) { return p.goroutines_ended > 0; });
}

}  // namespace

int main() {
  constexpr int kTasks = 1000;
  std::atomic<std::uint64_t> sum = 0;
  int rounds = 0;
  magpie::Stats stats = magpie::run(magpie::Options{.procs = 4}, [&] {
    // Once is enough on an idle machine. On a busy one a thread may come too late for a round, or
    // find enough in the global queue.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    magpie::Stats now;
    do {
      magpie::WaitGroup all;
      for (int i = 0; i < kTasks; ++i) all.go([&, i] { sum += compute(i) & 1; });
      all.wait();
      ++rounds;
      now = magpie::stats();
    } while (!all_took_part(now) && std::chrono::steady_clock::now() < limit);
    return now;
  });

  for (const magpie::ProcStats& p : stats.procs) {
    std::printf("P%d ended %4llu tasks; %4llu were stolen in %llu steals\n", p.id,
                static_cast<unsigned long long>(p.goroutines_ended),
                static_cast<unsigned long long>(p.goroutines_stolen),
                static_cast<unsigned long long>(p.steals_succeeded));
  }
  return all_took_part(stats) && sum <= static_cast<std::uint64_t>(rounds) * kTasks ? 0 : 1;
}
