#include "sched/run/homes.h"

#include <cstddef>
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
  return cpus::make_homes(*topology_, procs);
}

void Homes::settle(std::span<const cpus::Home> homes) {
  std::span<P* const> ps = runtime->ps.all();
  for (std::size_t i = 0; i < ps.size(); ++i)
    ps[i]->home = i < homes.size() ? homes[i] : cpus::Home{};
}

}  // namespace magpie::sched
