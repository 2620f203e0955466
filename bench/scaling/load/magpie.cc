// load: how long a goroutine waits from go() to its first instruction, as the load grows.
//
// One goroutine starts others, each of `work_us` microseconds of computation. It sleeps for
// `tick_us`, and then starts as many as a Poisson process of the wanted rate would have brought
// since it last did so. All are born on one P: the others get theirs by stealing. The load is in
// percent of what the CPUs under the Ps can do.
#include <magpie/magpie.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "measure.h"

namespace {

struct Plan {
  double per_second;  // goroutines
  std::uint64_t rounds;
  std::chrono::microseconds tick;
  std::int64_t duration_ns;
};

double rounds_per_ns() {
  constexpr std::uint64_t kRounds = 2'000'000;
  double best_ns = std::numeric_limits<double>::max();
  for (int i = 0; i < 10; ++i) {
    best_ns = std::min(best_ns, bench::time_ns([] { bench::keep(bench::busy_work(kRounds, 1)); }));
  }
  return static_cast<double>(kRounds) / best_ns;
}

struct Waits {
  std::vector<std::int64_t> ns;  // of each goroutine, in the order of their starts
  std::size_t started = 0;
  std::size_t ticks = 0;
};

void start_them(const Plan& plan, Waits& waits) {
  std::mt19937_64 random(42);
  magpie::WaitGroup all;
  const std::int64_t begin = bench::now_ns();
  std::int64_t last = begin;
  while (waits.started < waits.ns.size()) {
    magpie::sleep_for(plan.tick);
    ++waits.ticks;
    const std::int64_t now = bench::now_ns();
    if (now - begin > plan.duration_ns) break;
    const double due = plan.per_second * static_cast<double>(now - last) / 1e9;
    last = now;
    auto count = static_cast<std::size_t>(std::poisson_distribution<long>(due)(random));
    count = std::min(count, waits.ns.size() - waits.started);
    all.add(static_cast<int>(count));
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t* wait = &waits.ns[waits.started++];
      const std::int64_t born = bench::now_ns();
      magpie::go([&all, &plan, wait, born] {
        *wait = bench::now_ns() - born;
        bench::keep(bench::busy_work(plan.rounds, static_cast<std::uint64_t>(born)));
        all.done();
      });
    }
  }
  all.wait();
}

double at(const std::vector<std::int64_t>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  return static_cast<double>(sorted[static_cast<std::size_t>(place)]) / 1e3;
}

void report(Waits& waits, double ns, const magpie::ProcStats& before,
            const magpie::ProcStats& after) {
  waits.ns.resize(waits.started);
  if (waits.ns.empty()) return;
  std::sort(waits.ns.begin(), waits.ns.end());
  bench::report("median_us", at(waits.ns, 0.5));
  bench::report("p99_us", at(waits.ns, 0.99));
  bench::report("worst_us", at(waits.ns, 1));
  bench::report("ticks_per_second", static_cast<double>(waits.ticks) * 1e9 / ns);
  bench::report("started_per_second", static_cast<double>(waits.started) * 1e9 / ns);
  auto rate = [&](std::uint64_t magpie::ProcStats::*counter) {
    return static_cast<double>(after.*counter - before.*counter) * 1e9 / ns;
  };
  bench::report("steals_per_second", rate(&magpie::ProcStats::steals_succeeded));
  bench::report("stolen_per_second", rate(&magpie::ProcStats::goroutines_stolen));
  bench::report("wakes_per_second", rate(&magpie::ProcStats::wakes));
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  const int procs = static_cast<int>(args.number("procs", 2));
  const long percent = args.number("load_percent", 50);
  const long work_us = args.number("work_us", 10);
  const long tick_us = args.number("tick_us", 1'000);
  const long milliseconds = args.number("milliseconds", 2'000);

  const int cpus = std::min(procs, magpie::num_cpu());
  const double per_second =
      static_cast<double>(percent) / 100 * cpus * 1e6 / static_cast<double>(work_us);
  const Plan plan{per_second,
                  static_cast<std::uint64_t>(rounds_per_ns() * static_cast<double>(work_us) * 1e3),
                  std::chrono::microseconds(tick_us), milliseconds * 1'000'000};
  magpie::run(magpie::Options{.procs = procs}, [&] {
    Waits waits;
    const double most = per_second * static_cast<double>(milliseconds) / 1e3 * 1.2 + 1'000;
    waits.ns.resize(static_cast<std::size_t>(most));
    const magpie::Stats before = magpie::stats();
    const double ns = bench::time_ns([&] { start_them(plan, waits); });
    report(waits, ns, before.total, magpie::stats().total);
  });
}
