// load: how long a goroutine waits from go() to its first instruction, as the load grows.
//
// One goroutine starts others, each of `work_us` microseconds of computation, which are due at the
// times of a Poisson process of the wanted rate. It sleeps for `tick_us`, and then starts those
// that have become due. All are born on one P: the others get theirs by stealing. The load is in
// percent of what the CPUs under the Ps can do.
//
// Each goroutine tells two times: from go() to its first instruction, and from when it was due. The
// second one also has what the starter was late: a scheduler that holds the starter up cannot hide
// the wait.
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

// Short enough that, on a busy machine too, one of the tries is not interrupted.
double rounds_per_ns() {
  constexpr std::uint64_t kRounds = 100'000;
  double best_ns = std::numeric_limits<double>::max();
  for (int i = 0; i < 100; ++i) {
    best_ns = std::min(best_ns, bench::time_ns([] { bench::keep(bench::busy_work(kRounds, 1)); }));
  }
  return static_cast<double>(kRounds) / best_ns;
}

struct Waits {
  // Of each goroutine, in the order of their starts.
  std::vector<std::int64_t> from_go_ns, from_due_ns;
  std::size_t ticks = 0;
};

// When goroutines are due, in ns since the beginning.
std::vector<std::int64_t> due_times(const Plan& plan) {
  std::mt19937_64 random(42);
  std::exponential_distribution<double> gap(plan.per_second / 1e9);
  std::vector<std::int64_t> times;
  for (double t = gap(random); t < static_cast<double>(plan.duration_ns); t += gap(random))
    times.push_back(static_cast<std::int64_t>(t));
  return times;
}

void start_them(const Plan& plan, const std::vector<std::int64_t>& due, Waits& waits) {
  magpie::WaitGroup all;
  all.add(static_cast<int>(due.size()));
  const std::int64_t begin = bench::now_ns();
  for (std::size_t next = 0; next < due.size();) {
    magpie::sleep_for(plan.tick);
    ++waits.ticks;
    const std::int64_t now = bench::now_ns() - begin;
    for (; next < due.size() && due[next] <= now; ++next) {
      const std::int64_t born = bench::now_ns();
      magpie::go([&all, &plan, &waits, next, born, due_at = begin + due[next]] {
        const std::int64_t start = bench::now_ns();
        waits.from_go_ns[next] = start - born;
        waits.from_due_ns[next] = start - due_at;
        bench::keep(bench::busy_work(plan.rounds, next));
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
  std::sort(waits.from_go_ns.begin(), waits.from_go_ns.end());
  std::sort(waits.from_due_ns.begin(), waits.from_due_ns.end());
  bench::report("median_us", at(waits.from_go_ns, 0.5));
  bench::report("p99_us", at(waits.from_go_ns, 0.99));
  bench::report("worst_us", at(waits.from_go_ns, 1));
  bench::report("due_median_us", at(waits.from_due_ns, 0.5));
  bench::report("due_p99_us", at(waits.from_due_ns, 0.99));
  bench::report("ticks_per_second", static_cast<double>(waits.ticks) * 1e9 / ns);
  bench::report("started_per_second", static_cast<double>(waits.from_go_ns.size()) * 1e9 / ns);
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
    const std::vector<std::int64_t> due = due_times(plan);
    if (due.empty()) return;
    Waits waits;
    waits.from_go_ns.resize(due.size());
    waits.from_due_ns.resize(due.size());
    const magpie::Stats before = magpie::stats();
    const double ns = bench::time_ns([&] { start_them(plan, due, waits); });
    report(waits, ns, before.total, magpie::stats().total);
  });
}
