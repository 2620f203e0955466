// procs_sweep.cc: the same work with 1 P, 2, ... up to twice as many as there are CPUs.
//
// Look at the times: on a machine that is idle they fall until there is a P for each CPU, and stay
// there. More Ps than CPUs only share the CPUs. The result is the same every time, and every P has
// its part in it.
#include <magpie/magpie.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>

namespace {

// How many numbers below n are prime.
std::int64_t count_primes(std::int64_t n) {
  return magpie::parallel_reduce(
      std::int64_t{2}, n, std::int64_t{0},
      [](std::int64_t candidate) -> std::int64_t {
        for (std::int64_t d = 2; d * d <= candidate; ++d) {
          if (candidate % d == 0) return 0;
        }
        return 1;
      },
      [](std::int64_t a, std::int64_t b) { return a + b; });
}

bool all_took_part(const magpie::Stats& before) {
  return std::ranges::all_of(magpie::stats().procs, [&](const magpie::ProcStats& p) {
    for (const magpie::ProcStats& then : before.procs)
      if (then.id == p.id) return p.switches > then.switches;
    return false;
  });
}

}  // namespace

int main() {
  return magpie::run([] {
    using Clock = std::chrono::steady_clock;
    bool right = true;
    for (int procs = 1; procs <= 2 * magpie::num_cpu(); procs *= 2) {
      magpie::set_procs(procs);
      const magpie::Stats before = magpie::stats();
      const auto start = Clock::now();
      right = right && count_primes(200'000) == 17'984;
      const std::chrono::duration<double, std::milli> took = Clock::now() - start;
      std::printf("%3d Ps: %6.1f ms\n", procs, took.count());
      // Once is enough on an idle machine. On a busy one a thread may come too late for its part.
      while (!all_took_part(before) && Clock::now() < start + std::chrono::minutes(1))
        (void)count_primes(200'000);
      right =
          right && before.procs.size() == static_cast<std::size_t>(procs) && all_took_part(before);
    }
    return right ? 0 : 1;
  });
}
