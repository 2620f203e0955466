// lab.cc: `magpie lab run`, `models`, `calibrate`, `measure` and `replay`.

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "command/commands.h"
#include "command/trace_file.h"
#include "lab/calibrate.h"
#include "lab/loads.h"
#include "lab/models.h"
#include "lab/real.h"
#include "lab/replay.h"
#include "lab/report.h"

namespace magpie::command {
namespace {

std::vector<lab::Alternative> chosen(const std::vector<std::string>& policies) {
  std::vector<lab::Alternative> result = {{"product", ""}};
  for (const std::string& changes : policies) {
    if (changes == "all") return lab::alternatives();
    result.push_back({changes, changes});
  }
  return result;
}

lab::Costs costs_with(const std::vector<std::string>& changes) {
  lab::Costs costs;
  for (const std::string& change : changes) lab::set(costs, change);
  return costs;
}

lab::Topology topology_for(const std::string& levels, std::uint32_t procs) {
  return levels.empty() ? lab::Topology{} : lab::topology_of(levels, procs);
}

// Lines of a table of two columns, with the band of the paper.
void print_model(const char* what, const std::string& published, double value) {
  std::printf("%-62s %-22s %8.3f\n", what, published.c_str(), value);
  std::fflush(stdout);
}

}  // namespace

int lab_tables(const LabOptions& options) {
  lab::Header header{"magpie lab run", costs_with(options.costs), options.seed, options.topology};
  if (options.group != 0) header.topology = "groups of " + std::to_string(options.group) + " Ps";
  std::vector<std::string> names = options.loads;
  if (names.empty())
    for (const lab::LoadInfo& info : lab::loads()) names.push_back(info.name);
  std::vector<lab::Row> rows;
  for (const std::string& name : names) {
    for (const lab::Alternative& policy : chosen(options.policies)) {
      for (const std::uint32_t procs : options.procs) {
        lab::Setup setup;
        setup.procs = procs;
        setup.cpus = options.cpus;
        setup.costs = header.costs;
        setup.policy = lab::policy_of(policy.changes);
        setup.topology = topology_for(options.topology, procs);
        setup.topology.group = options.group;
        setup.seed = options.seed;
        const auto load = lab::make_load(
            name, {options.count, options.work_ns, options.busy, options.skew}, procs);
        rows.push_back({name, policy.name, procs, lab::Machine(setup, *load).run()});
      }
    }
  }
  if (!options.svg.empty()) {
    std::ofstream file(options.svg, std::ios::trunc);
    lab::print_svg(file, header, rows, options.values);
    file.flush();
    if (!file) throw Failure(options.svg + ": cannot be written");
  }
  if (options.json)
    lab::print_json(std::cout, header, rows);
  else
    lab::print_table(std::cout, header, rows);
  return 0;
}

int lab_models() {
  std::printf("%-62s %-22s %8s\n", "model", "published", "lab");
  for (const std::uint32_t m : {16u, 256u, 4096u}) {
    const std::string what =
        "steal half: (makespan - W/m) / log2 W, W = 2^20, m = " + std::to_string(m);
    print_model(what.c_str(), "at most 3.65, sim. 2.4",
                lab::steal_half_term(m, 1 << 20, m > 1000 ? 10 : 200, 1));
  }
  for (const std::uint32_t m : {2u, 4u}) {
    const std::string what =
        "    makespan - W/m in steps, W = 2^20, m = " + std::to_string(m) + " (see stealing.md)";
    print_model(what.c_str(), "at most 73", 20 * lab::steal_half_term(m, 1 << 20, 200, 1));
  }
  for (const double busy : {0.5, 0.7, 0.8, 0.9, 0.95}) {
    const lab::Measured measured = lab::steal_one_time_of_machine(1024, busy, 1200, 1);
    const std::string what = "steal one: mean time at load " + std::to_string(measured.busy);
    char predicted[32];
    std::snprintf(predicted, sizeof predicted, "%.3f",
                  lab::steal_one_time_predicted(measured.busy));
    print_model(what.c_str(), predicted, measured.time);
  }
  print_model("sharing is cheaper than stealing below load", "0.618",
              lab::border_of_sharing(0.02, 1000, 400, 1));
  for (const double latency : {1.0, 10.0, 100.0}) {
    const std::string what = "latency " + std::to_string(static_cast<int>(latency)) +
                             ": (makespan - W/p) / (latency log2 (W/latency))";
    print_model(
        what.c_str(), "constant",
        lab::latency_term(32, 1 << 16, latency, 6, 1) / (latency * std::log2(65'536 / latency)));
  }
  for (const double skew : {0.0, 0.5}) {
    const lab::Clusters clusters = lab::clusters(0.8, skew, 1);
    const std::string what = "two clusters, load " + std::to_string(0.8 * (1 + skew)) + " and " +
                             std::to_string(0.8 * (1 - skew)) + ": near / fuller";
    print_model(what.c_str(), skew == 0 ? "below 1" : "above 1",
                clusters.mostly_near / clusters.fuller);
  }
  for (const int log : {10, 20}) {
    const std::string what = "balance: fullest - mean, 64 queues, W = 2^" + std::to_string(log);
    print_model(what.c_str(), "constant", lab::balance_excess(64, std::uint64_t{1} << log, 1));
  }
  for (const std::uint32_t procs : {4u, 16u, 64u}) {
    const lab::ForkJoinFit fit = lab::fork_join(procs, 14, 1);
    const std::string what =
        "fork-join, depth 14: (T - T1/P) / T_inf, P = " + std::to_string(procs);
    print_model(what.c_str(), "bounded", fit.term());
    print_model("    steals / (P T_inf)", "bounded", fit.steals_per_path());
  }
  return 0;
}

int lab_calibrate() {
  const lab::Costs costs = lab::calibrate();
  std::cout << "costs in ns: " << costs.text() << "\n";
  return 0;
}

int lab_measure(const LabMeasureOptions& options) {
  if (options.recorded.empty()) {
    lab::print_measured(std::cout, lab::measure_all(options.procs, options.runs));
    return 0;
  }
  std::ifstream file(options.recorded);
  if (!file) throw Failure(options.recorded + ": cannot be read");
  lab::print_measured(std::cout, lab::read_recorded(file));
  return 0;
}

int lab_replay(const LabReplayOptions& options) {
  trace::Reader reader = open_trace(options.file);
  const lab::Recording recording = lab::record(reader);
  if (recording.goroutines() == 0)
    throw Failure(options.file + ": no goroutine was made or woken in it");
  lab::Header header{"magpie lab replay " + options.file, costs_with(options.costs), options.seed,
                     options.topology};
  std::vector<lab::Row> rows;
  for (const lab::Alternative& policy : chosen(options.policies)) {
    lab::Setup setup;
    setup.procs = options.procs != 0 ? options.procs : recording.procs();
    setup.cpus = options.cpus;
    setup.costs = header.costs;
    setup.policy = lab::policy_of(policy.changes);
    setup.topology = topology_for(options.topology, setup.procs);
    setup.seed = options.seed;
    rows.push_back({"trace", policy.name, setup.procs, lab::replay(recording, setup)});
  }
  lab::print_table(std::cout, header, rows);
  std::printf("%-33s %4u %41.3g %9.3g\n", "measured in the trace", recording.procs(),
              static_cast<double>(recording.latency().quantile(0.5)) / 1e3,
              static_cast<double>(recording.latency().quantile(0.99)) / 1e3);
  return 0;
}

}  // namespace magpie::command
