#include "lab/real.h"

#include <dirent.h>
#include <magpie/magpie.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <istream>
#include <map>
#include <memory>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "lab/calibrate.h"
#include "lab/loads.h"
#include "lab/report.h"

namespace magpie::lab {
namespace {

// Work that takes CPU time, not time: a chain of multiplications.
class Work {
 public:
  Work() {
    constexpr std::uint64_t kSteps = 20'000;
    double least = 1e18;
    for (int i = 0; i < 200; ++i) {
      const Ns begin = base::now_ns();
      steps(kSteps);
      least = std::min(least, static_cast<double>(base::now_ns() - begin) / kSteps);
    }
    per_step_ = least;
  }
  void take(Ns time) const {
    steps(static_cast<std::uint64_t>(static_cast<double>(time) / per_step_));
  }

 private:
  static void steps(std::uint64_t count) {
    std::uint64_t value = 1;
    for (std::uint64_t i = 0; i < count; ++i) {
      value = value * 0x9E3779B97F4A7C15u + 1;
      asm volatile("" : "+r"(value));
    }
  }
  double per_step_ = 1;
};

// How long threads of this process waited for a CPU.
Ns run_delay() {
  Ns sum = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  while (const dirent* entry = readdir(tasks)) {
    std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/schedstat");
    Ns on_cpu = 0, waited = 0;
    if (file >> on_cpu >> waited) sum += waited;
  }
  closedir(tasks);
  return sum;
}

struct WaitTimes {
  explicit WaitTimes(std::size_t size) : ns(size) {}
  std::vector<Ns> ns;  // each goroutine writes its own
};

void burst(const RealLoad& load, const Work& work, WaitTimes& waits) {
  WaitGroup all;
  all.add(static_cast<int>(load.count));
  for (std::uint64_t i = 0; i < load.count; ++i) {
    const Ns ready = base::now_ns();
    go([&, i, ready] {
      waits.ns[i] = base::now_ns() - ready;
      work.take(load.work);
      all.done();
    });
  }
  all.wait();
}

// Node 1 is the root; node i has the children 2i and 2i + 1.
void fork(const RealLoad& load, const Work& work, WaitTimes& waits, std::uint64_t node, Ns ready) {
  waits.ns[node] = base::now_ns() - ready;
  if (node >= load.count) return work.take(load.work);
  WaitGroup children;
  children.add(2);
  for (std::uint64_t child : {2 * node, 2 * node + 1}) {
    const Ns since = base::now_ns();
    go([&, child, since] {
      fork(load, work, waits, child, since);
      children.done();
    });
  }
  children.wait();
}

void ping_pong(const RealLoad& load, const Work& work, WaitTimes& waits, std::uint64_t pairs) {
  WaitGroup all;
  all.add(static_cast<int>(2 * pairs));
  for (std::uint64_t pair = 0; pair < pairs; ++pair) {
    auto there = std::make_shared<Chan<Ns>>();
    auto back = std::make_shared<Chan<Ns>>();
    go([&, there, back] {
      for (std::uint64_t i = 0; i < load.count; ++i) {
        work.take(load.work);
        there->send(base::now_ns());
        (void)back->recv();
      }
      all.done();
    });
    go([&, there, back, pair] {
      for (std::uint64_t i = 0; i < load.count; ++i) {
        const Ns sent = there->recv().value_or(0);
        waits.ns[pair * load.count + i] = base::now_ns() - sent;
        work.take(load.work);
        back->send(0);
      }
      all.done();
    });
  }
  all.wait();
}

Ns quantile(std::vector<Ns> all, double share) {
  if (all.empty()) return 0;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(all.size() - 1));
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at), all.end());
  return all[at];
}

Real measure(const RealLoad& load, int procs, int runs, const Work& work) {
  Real real;
  real.load = load;
  real.procs = static_cast<std::uint32_t>(procs);
  real.cpus = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Ns> times, p50s, p99s;
  Options options;
  options.procs = procs;
  magpie::run(options, [&] {
    // The pauses are for other programs: this one may run under a policy that lets them wait.
    for (Ns time = 0; real.runs < runs; sleep_for(std::chrono::nanoseconds(2 * time))) {
      ++real.runs;
      const std::uint64_t pairs = 2 * static_cast<std::uint64_t>(procs);
      const std::size_t size = load.name == "fork-join"   ? 2 * load.count
                               : load.name == "ping-pong" ? pairs * load.count
                                                          : load.count;
      WaitTimes waits(size);
      const Ns delayed = run_delay();
      const Ns begin = base::now_ns();
      if (load.name == "burst") burst(load, work, waits);
      if (load.name == "fork-join") fork(load, work, waits, 1, begin);
      if (load.name == "ping-pong") ping_pong(load, work, waits, pairs);
      time = base::now_ns() - begin;
      const bool has_cpus = real.cpus >= real.procs;
      if (has_cpus && 20 * (run_delay() - delayed) > time) continue;
      if (load.name == "fork-join") waits.ns.erase(waits.ns.begin());  // there is no node 0
      times.push_back(time);
      p50s.push_back(quantile(waits.ns, 0.5));
      p99s.push_back(quantile(waits.ns, 0.99));
    }
  });
  real.clean = static_cast<int>(times.size());
  real.time = quantile(times, 0.5);
  real.p50 = quantile(p50s, 0.5);
  real.p99 = quantile(p99s, 0.5);
  return real;
}

}  // namespace

const std::vector<RealLoad>& real_loads() {
  static const std::vector<RealLoad> all = {
      {"burst", 400, 5'000}, {"fork-join", 256, 4'000}, {"ping-pong", 200, 1'000}};
  return all;
}

Recorded measure_all(const std::vector<int>& procs, int runs) {
  Recorded recorded;
  recorded.costs = calibrate();
  const Work work;
  for (const RealLoad& load : real_loads())
    for (const int p : procs) recorded.rows.push_back(measure(load, p, runs, work));
  return recorded;
}

Result simulate(const Real& real, const Costs& costs) {
  Setup setup;
  setup.procs = real.procs;
  setup.cpus = real.cpus;
  setup.costs = costs;
  const auto load = make_load(real.load.name, {real.load.count, real.load.work, 0}, real.procs);
  return Machine(setup, *load).run();
}

void print_measured(std::ostream& out, const Recorded& recorded) {
  const Costs& costs = recorded.costs;
  out << "costs pop=" << costs.pop << " switch=" << costs.switching << " spawn=" << costs.spawn
      << " ready=" << costs.ready << " probe=" << costs.probe_near << " steal=" << costs.steal_near
      << " miss=" << costs.miss << " global=" << costs.global << " wake-call=" << costs.wake_call
      << " wake=" << costs.wake << " spin-round=" << costs.spin_round << " timer=" << costs.timer
      << "\n";
  for (const Real& real : recorded.rows) {
    out << "real load=" << real.load.name << " procs=" << real.procs << " cpus=" << real.cpus
        << " count=" << real.load.count << " work=" << real.load.work << " clean=" << real.clean
        << " runs=" << real.runs << " time=" << real.time << " p50=" << real.p50
        << " p99=" << real.p99 << "\n";
    const Result result = simulate(real, costs);
    out << "# the lab says time=" << result.time << " p50=" << result.latency.quantile(0.5)
        << " p99=" << result.latency.quantile(0.99) << "\n";
  }
}

Recorded read_recorded(std::istream& in) {
  Recorded recorded;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    std::map<std::string, std::string> values;
    for (std::string word; words >> word;) {
      const std::size_t at = word.find('=');
      if (at == std::string::npos) throw std::invalid_argument(line);
      values[word.substr(0, at)] = word.substr(at + 1);
      if (kind == "costs") set(recorded.costs, word);
    }
    if (kind == "costs") continue;
    if (kind != "real") throw std::invalid_argument(line);
    const auto number = [&](const char* name) { return std::stoll(values[name]); };
    Real real;
    real.load = {values["load"], static_cast<std::uint64_t>(number("count")), number("work")};
    real.procs = static_cast<std::uint32_t>(number("procs"));
    real.cpus = static_cast<std::uint32_t>(number("cpus"));
    real.clean = static_cast<int>(number("clean"));
    real.runs = static_cast<int>(number("runs"));
    real.time = number("time");
    real.p50 = number("p50");
    real.p99 = number("p99");
    recorded.rows.push_back(real);
  }
  return recorded;
}

}  // namespace magpie::lab
