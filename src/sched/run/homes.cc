#include "sched/run/homes.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "cpus/affinity.h"
#include "sched/run/procs.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

bool Homes::look() {
  std::vector<int> numbers = cpus::affinity_list();
  if (numbers == numbers_) return false;
  numbers_ = std::move(numbers);
  topology_.reset();
  return true;
}

// The CPUs of a synthetic machine are real ones by turns, so that Ps can be pinned.
cpus::Topology Homes::read() const {
  if (synthetic_.empty()) return cpus::read_topology(numbers_, cores_, file_root());
  cpus::Topology topology = cpus::parse_topology(synthetic_).value_or(cpus::Topology{});
  for (cpus::Cpu& cpu : topology) {
    auto number = static_cast<std::size_t>(cpu.number);
    cpu.number = numbers_.empty() ? -1 : numbers_[number % numbers_.size()];
  }
  return topology;
}

std::vector<cpus::Home> Homes::plan(std::uint32_t procs) {
  if (procs == 1 && !topology_) {  // it is near to nobody: no file need be read
    cpus::Topology first;
    if (!numbers_.empty()) first.push_back({.number = numbers_.front()});
    return cpus::make_homes(std::move(first), 1);
  }
  if (!topology_) topology_ = read();
  std::vector<cpus::Home> homes = cpus::make_homes(*topology_, procs);
  std::uint32_t nodes = std::min(cpus::count_nodes(homes), kMostNodes);
  for (cpus::Home& home : homes) home.node_number %= kMostNodes;
  if (!runtime->global.add_shards(nodes)) throw std::bad_alloc();
  runtime->records.use(nodes);
  runtime->stacks.use(nodes);
  return homes;
}

void Homes::settle(std::span<const cpus::Home> homes) {
  std::span<P* const> ps = runtime->ps.all();
  for (std::size_t i = 0; i < ps.size(); ++i)
    ps[i]->home = i < homes.size() ? homes[i] : cpus::Home{};
  bool has_nodes = !homes.empty() && homes.front().node.size() != homes.size();
  has_nodes_.store(has_nodes, base::relaxed);
  for (const cpus::Home& home : homes) {
    auto cpu = static_cast<std::size_t>(home.cpu);
    if (cpu < kMostCpus)
      node_of_cpu_[cpu].store(static_cast<std::uint8_t>(home.node_number), base::relaxed);
  }
}

// A CPU that is no P's home, because there are fewer Ps, counts as of the first node.
std::uint32_t Homes::node_here_slow() const {
  auto cpu = static_cast<std::size_t>(sched_getcpu());
  return cpu < kMostCpus ? node_of_cpu_[cpu].load(base::relaxed) : 0;
}

}  // namespace magpie::sched
