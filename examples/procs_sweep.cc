// procs_sweep.cc: the same work with 1 P, 2, ... up to twice as many as there are CPUs.
//
// Look at the times: they fall until there is a P for each CPU, and stay there. More Ps than CPUs
// only share the CPUs. The result is the same every time.
#include <magpie/magpie.h>

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

}  // namespace

int main() {
  return magpie::run([] {
    using Clock = std::chrono::steady_clock;
    bool right = true;
    for (int procs = 1; procs <= 2 * magpie::num_cpu(); procs *= 2) {
      magpie::set_procs(procs);
      const auto start = Clock::now();
      const std::int64_t primes = count_primes(200'000);
      const std::chrono::duration<double, std::milli> took = Clock::now() - start;
      std::printf("%3d Ps: %lld primes in %6.1f ms\n", procs, static_cast<long long>(primes),
                  took.count());
      right = right && primes == 17'984 && magpie::procs() == procs &&
              magpie::stats().procs.size() == static_cast<std::size_t>(procs);
    }
    return right ? 0 : 1;
  });
}
