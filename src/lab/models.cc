#include "lab/models.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include "base/random.h"
#include "lab/loads.h"
#include "lab/machine.h"

namespace magpie::lab {
namespace {

constexpr Ns kUnit = 1'000;

Costs no_costs() {
  Costs costs;
  costs.pop = costs.switching = costs.spawn = costs.ready = 0;
  costs.probe_near = costs.probe_far = costs.steal_near = costs.steal_far = 0;
  costs.miss = costs.miss_far = costs.global = costs.wake_call = costs.wake = 0;
  costs.timer = 0;
  return costs;
}

// The decisions of the product, and nothing that the model does not have.
Policy bare_policy() {
  Policy policy;
  policy.runnext = Runnext::never;
  policy.uses_runnext = policy.reserves = policy.wakes = policy.throttles = false;
  policy.order = Order::one_random;
  policy.rounds = 1;
  policy.patience = 0;
  policy.slots = std::uint64_t{1} << 40;
  policy.look_every = 1 << 30;
  return policy;
}

double unit(base::Random& random) {
  return (static_cast<double>(random.next()) + 0.5) / 4294967296.0;
}

// Steps in which no processor is idle are passed over.
std::uint64_t makespan(std::uint32_t m, std::uint64_t tasks, base::Random& random) {
  using Finish = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> finishes;
  std::vector<std::uint64_t> finish(m, 0), robbed_at(m, ~std::uint64_t{0});
  std::vector<std::uint32_t> idle, still_idle;
  finish[0] = tasks;
  finishes.push({tasks, 0});
  for (std::uint32_t p = 1; p < m; ++p) idle.push_back(p);
  std::uint64_t now = 0;
  std::uint32_t busy = 1;
  for (;;) {
    if (idle.empty()) now = finishes.top().first;
    while (!finishes.empty() && finishes.top().first <= now) {
      const auto [time, p] = finishes.top();
      finishes.pop();
      if (finish[p] != time) continue;  // it was robbed meanwhile, or is idle already
      finish[p] = 0;
      idle.push_back(p);
      --busy;
    }
    if (busy == 0) return now;
    still_idle.clear();
    for (const std::uint32_t thief : idle) {
      std::uint32_t victim = random.next() % (m - 1);
      if (victim >= thief) ++victim;
      const std::uint64_t left = finish[victim] > now ? finish[victim] - now : 0;
      const std::uint64_t waiting = left < 2 ? 0 : left - 1;
      const std::uint64_t taken = sched::policy::to_steal(waiting);
      if (taken == 0 || robbed_at[victim] == now) {
        still_idle.push_back(thief);
        continue;
      }
      robbed_at[victim] = now;
      finish[victim] -= taken;
      finishes.push({finish[victim], victim});
      finish[thief] = now + 1 + taken;
      robbed_at[thief] = now;  // it holds nothing before the next step
      finishes.push({finish[thief], thief});
      ++busy;
    }
    idle.swap(still_idle);
    ++now;
  }
}

// How much longer than on machines that share at once, in units, it takes until `tasks` that begin
// on one P are done: the mean of the runs.
double mean_excess(std::uint32_t procs, std::uint64_t tasks, const Costs& costs, int runs,
                   std::uint64_t seed) {
  double sum = 0;
  for (int run = 0; run < runs; ++run) {
    Setup setup;
    setup.procs = procs;
    setup.costs = costs;
    setup.policy = bare_policy();
    setup.policy.spin = Spin::for_ever;
    setup.all_awake = true;
    setup.seed = seed + static_cast<std::uint64_t>(run);
    Heap load(tasks, kUnit);
    const double time = static_cast<double>(Machine(setup, load).run().time) / kUnit;
    sum += time - static_cast<double>(tasks) / procs;
  }
  return sum / runs;
}

}  // namespace

double steal_half_term(std::uint32_t m, std::uint64_t tasks, int runs, std::uint64_t seed) {
  base::Random random(seed);
  double sum = 0;
  for (int run = 0; run < runs; ++run)
    sum += static_cast<double>(makespan(m, tasks, random)) - static_cast<double>(tasks) / m;
  return sum / runs / std::log2(static_cast<double>(tasks));
}

double steal_half_term_of_machine(std::uint32_t m, std::uint64_t tasks, int runs,
                                  std::uint64_t seed) {
  Costs costs = no_costs();
  costs.probe_near = kUnit;
  return mean_excess(m, tasks, costs, runs, seed) / std::log2(static_cast<double>(tasks));
}

// The fractions of processors with at least i tasks: the first is the load, the second solves a
// quadratic equation, the others are geometric. Their sum over the load is the time (Little's law).
double steal_one_time_predicted(double busy) {
  const double sum = 1 + busy;
  const double second = (sum - std::sqrt(sum * sum - 4 * busy * busy)) / 2;
  const double ratio = busy / (1 + busy - second);
  return (busy + second / (1 - ratio)) / busy;
}

Measured steal_one_time_of_machine(std::uint32_t procs, double busy, double units,
                                   std::uint64_t seed) {
  constexpr Ns kFine = 1'000'000;  // so that rounding to nanoseconds does not show
  Setup setup;
  setup.procs = procs;
  setup.costs = no_costs();
  setup.policy = bare_policy();
  setup.policy.amount = Amount::one;
  setup.policy.spin = Spin::off;
  setup.seed = seed;
  setup.until = static_cast<Ns>(units * kFine);
  const Ns from = setup.until / 4;
  HomeArrivals load(busy, kFine);
  load.count_between(from, setup.until);
  Machine machine(setup, load);
  machine.count_from(from);
  const Result result = machine.run();
  const double wait = result.waits / static_cast<double>(result.latency.count());
  return {wait / kFine + 1, load.busy_seen()};
}

// All times are exponential, so the state is the lengths of the queues.
Probing probe(Who who, double busy, double rate, std::uint32_t servers, double units,
              std::uint64_t seed) {
  base::Random random(seed);
  std::vector<std::uint32_t> length(servers, 0);
  // Servers by kind, with their places: idle, and with a job that waits.
  struct Set {
    std::vector<std::uint32_t> items, place;
    explicit Set(std::uint32_t n) : place(n, ~std::uint32_t{0}) {}
    void change(std::uint32_t item, bool in) {
      const bool is_in = place[item] != ~std::uint32_t{0};
      if (is_in == in) return;
      if (in) {
        place[item] = static_cast<std::uint32_t>(items.size());
        items.push_back(item);
        return;
      }
      const std::uint32_t last = items.back();
      items[place[item]] = last;
      place[last] = place[item];
      items.pop_back();
      place[item] = ~std::uint32_t{0};
    }
  };
  Set idle(servers), working(servers), waiting(servers);
  for (std::uint32_t s = 0; s < servers; ++s) idle.change(s, true);
  const auto changed = [&](std::uint32_t s) {
    idle.change(s, length[s] == 0);
    working.change(s, length[s] != 0);
    waiting.change(s, length[s] > 1);
  };
  double now = 0, area = 0, jobs = 0, messages = 0, arrivals = 0;
  const double from = units / 4;
  while (now < units) {
    const double arrival_rate = busy * servers;
    const double service_rate = static_cast<double>(working.items.size());
    const Set& probers = who == Who::thieves ? idle : waiting;
    const double probe_rate = rate * static_cast<double>(probers.items.size());
    const double total = arrival_rate + service_rate + probe_rate;
    const double step = -std::log(unit(random)) / total;
    if (now > from) area += jobs * step;
    now += step;
    double pick = unit(random) * total;
    const auto any = [&](const std::vector<std::uint32_t>& items) {
      return items[random.next() % items.size()];
    };
    if (pick < arrival_rate) {
      const std::uint32_t s = random.next() % servers;
      ++length[s];
      ++jobs;
      if (now > from) ++arrivals;
      changed(s);
    } else if (pick -= arrival_rate; pick < service_rate) {
      const std::uint32_t s = any(working.items);
      --length[s];
      --jobs;
      changed(s);
    } else if (!probers.items.empty()) {
      const std::uint32_t a = any(probers.items);
      const std::uint32_t b = random.next() % servers;
      if (now > from) ++messages;
      const std::uint32_t full = who == Who::thieves ? b : a;
      const std::uint32_t empty = who == Who::thieves ? a : b;
      if (length[full] < 2 || length[empty] != 0) continue;
      --length[full];
      ++length[empty];
      changed(full);
      changed(empty);
    }
  }
  return {area / arrivals, messages / (units - from) / servers};
}

// At the same rate both move jobs equally often, so that the times are equal. The policy that needs
// fewer messages for that is the better one at equal messages.
double border_of_sharing(double rate, std::uint32_t servers, double units, std::uint64_t seed) {
  double low = 0.5, high = 0.75;
  for (int i = 0; i < 7; ++i) {
    const double middle = (low + high) / 2;
    const double steal = probe(Who::thieves, middle, rate, servers, units, seed).messages;
    const double share = probe(Who::sharers, middle, rate, servers, units, seed).messages;
    (share < steal ? low : high) = middle;
  }
  return (low + high) / 2;
}

double latency_term(std::uint32_t procs, std::uint64_t tasks, double latency, int runs,
                    std::uint64_t seed) {
  Costs costs = no_costs();
  costs.probe_near = costs.steal_near = static_cast<Ns>(latency * kUnit);
  return mean_excess(procs, tasks, costs, runs, seed);
}

Clusters clusters(double busy, double skew, std::uint64_t seed) {
  const auto mean_wait = [&](Order order) {
    Setup setup;
    setup.procs = 32;
    setup.topology.group = 16;
    setup.costs = no_costs();
    setup.costs.probe_near = setup.costs.steal_near = kUnit / 10;
    setup.costs.probe_far = setup.costs.steal_far = kUnit / 2;
    setup.policy = bare_policy();
    setup.policy.order = order;
    setup.policy.spin = Spin::for_ever;
    setup.all_awake = true;
    setup.seed = seed;
    setup.until = 4'000 * kUnit;
    HomeArrivals load(busy, kUnit, skew);
    Machine machine(setup, load);
    machine.count_from(setup.until / 4);
    const Result result = machine.run();
    return result.waits / static_cast<double>(result.latency.count()) / kUnit;
  };
  return {mean_wait(Order::mostly_near), mean_wait(Order::fuller)};
}

double balance_excess(std::uint32_t m, std::uint64_t tasks, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<std::uint64_t> load(m, 0);
  load[0] = tasks;
  const int settle = 40 + 4 * static_cast<int>(std::log2(static_cast<double>(tasks)));
  constexpr int kSteps = 400;
  double sum = 0;
  for (int step = 0; step < settle + kSteps; ++step) {
    for (std::uint32_t p = 0; p < m; ++p) {
      // One task is made or done by each; what is done elsewhere is made here.
      const std::uint32_t other = random.next() % m;
      if (load[other] != 0) {
        --load[other];
        ++load[p];
      }
      if (random.next() % 2 == 0) continue;
      const std::uint32_t victim = random.next() % m;
      if (load[victim] <= load[p] + 1) continue;
      const std::uint64_t taken = sched::policy::to_steal(load[victim] - load[p] - 1);
      load[victim] -= taken;
      load[p] += taken;
    }
    if (step >= settle)
      sum += static_cast<double>(*std::max_element(load.begin(), load.end())) -
             static_cast<double>(tasks) / m;
  }
  return sum / kSteps;
}

ForkJoinFit fork_join(std::uint32_t procs, std::uint32_t depth, std::uint64_t seed) {
  const auto run = [&](std::uint32_t p) {
    Setup setup;
    setup.procs = p;
    setup.costs = no_costs();
    setup.costs.spawn = kUnit / 2;
    setup.costs.ready = setup.costs.switching = kUnit / 4;
    setup.costs.probe_near = kUnit / 2;
    setup.costs.steal_near = kUnit / 2;
    setup.policy = bare_policy();
    setup.policy.spin = Spin::for_ever;
    setup.policy.order = Order::uniform;
    setup.all_awake = true;
    setup.seed = seed;
    const std::uint64_t leaves = std::uint64_t{1} << depth;
    const auto load = make_load("fork-join", {leaves, kUnit, 0}, p);
    return Machine(setup, *load).run();
  };
  ForkJoinFit fit;
  fit.procs = procs;
  fit.t1 = static_cast<double>(run(1).time) / kUnit;
  const Result result = run(procs);
  fit.tp = static_cast<double>(result.time) / kUnit;
  // On the way down two spawns and a switch, on the way up a wake-up and a switch, then the leaf.
  fit.critical = depth * (2 * 0.5 + 0.25 + 0.25 + 0.25) + 1 + 0.25;
  fit.steals = static_cast<double>(result.steals);
  return fit;
}

}  // namespace magpie::lab
