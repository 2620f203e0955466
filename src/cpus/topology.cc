// topology.cc: see topology.h.

#include "cpus/topology.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "cpus/file_text.h"

namespace magpie::cpus {
namespace {

constexpr int kMostSynthetic = 4096;  // CPUs
constexpr int kLargest = 1 << 20;     // no kernel numbers its CPUs or nodes higher
constexpr const char* kCpuFiles = "/sys/devices/system/cpu/cpu";
constexpr const char* kNodeFiles = "/sys/devices/system/node/";

// Cuts a number off the front of `rest`. None: there is no number, or a silly one.
std::optional<int> take_number(std::string_view& rest) {
  int number = 0;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || number < 0 || number > kLargest) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

bool take(std::string_view& rest, char wanted) {
  if (rest.empty() || rest.front() != wanted) return false;
  rest.remove_prefix(1);
  return true;
}

class Reader {
 public:
  explicit Reader(const std::string& root) : root_(root) {}

  std::vector<int> list(const std::string& path) {
    if (read_text(root_ + path, text_) != FileRead::read) return {};
    return parse_cpu_list(text_);
  }

  // Those that share the last cache of the CPU; empty: unknown. Each cache has a directory. They
  // are numbered from the first level on, so the last is the largest.
  std::vector<int> sharers_of_cache(int cpu) {
    const std::string caches = kCpuFiles + std::to_string(cpu) + "/cache/index";
    for (const char* index : {"4", "3", "2"}) {
      std::vector<int> sharers = list(caches + index + "/shared_cpu_list");
      if (!sharers.empty()) return sharers;
    }
    return {};
  }

  // The lowest CPU of the core, which names it. Kernels before 5.7 know only the second file.
  int core_of(int cpu) {
    const std::string topology = kCpuFiles + std::to_string(cpu) + "/topology/";
    for (const char* file : {"core_cpus_list", "thread_siblings_list"}) {
      const std::vector<int> siblings = list(topology + file);
      if (!siblings.empty()) return siblings.front();
    }
    return cpu;
  }

 private:
  std::string root_;
  std::string text_;
};

bool contains_all(const std::vector<int>& those, std::span<const int> wanted) {
  return std::ranges::all_of(wanted,
                             [&](int cpu) { return std::ranges::find(those, cpu) != those.end(); });
}

void read_nodes(Reader& reader, const std::vector<int>& nodes, Topology& topology) {
  if (nodes.size() < 2) return;
  for (const int node : nodes) {
    const std::vector<int> members =
        reader.list(kNodeFiles + ("node" + std::to_string(node)) + "/cpulist");
    for (Cpu& cpu : topology)
      if (std::ranges::find(members, cpu.number) != members.end()) cpu.node = node;
  }
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  do {
    const std::optional<int> first = take_number(text);
    std::optional<int> last = first;
    if (first && take(text, '-')) last = take_number(text);
    if (!first || !last) break;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  } while (take(text, ','));
  return cpus;
}

Topology read_topology(std::span<const int> numbers, Cores cores, const std::string& root) {
  Topology topology;
  for (const int number : numbers) topology.push_back({.number = number, .core = number});
  if (numbers.size() < 2) return topology;
  Reader reader(root);
  const std::vector<int> nodes = reader.list(kNodeFiles + std::string("online"));
  read_nodes(reader, nodes, topology);
  const std::vector<int> sharers = reader.sharers_of_cache(numbers.front());
  const bool all_share = sharers.empty() || contains_all(sharers, numbers);
  for (Cpu& cpu : topology) {
    if (!all_share) {
      const std::vector<int> its = reader.sharers_of_cache(cpu.number);
      if (!its.empty()) cpu.cache = its.front();
    }
    if (cores == Cores::read) cpu.core = reader.core_of(cpu.number);
  }
  return topology;
}

std::optional<Topology> parse_topology(std::string_view text) {
  constexpr std::array<std::string_view, 4> kLevels = {"node", "l3", "core", "pu"};
  std::array<int, 4> parts = {1, 1, 1, 1};
  std::size_t level = 0;
  int all = 1;
  while (!text.empty()) {
    while (level < kLevels.size() && !text.starts_with(kLevels[level])) ++level;
    if (level == kLevels.size()) return std::nullopt;
    text.remove_prefix(kLevels[level].size());
    if (!take(text, ':')) return std::nullopt;
    const std::optional<int> count = take_number(text);
    if (!count || *count < 1 || *count > kMostSynthetic / all) return std::nullopt;
    parts[level++] = *count;
    all *= *count;
    if (!text.empty() && !take(text, ' ')) return std::nullopt;
  }
  Topology topology;
  for (int cpu = 0; cpu < all; ++cpu) {
    const int core = cpu / parts[3];
    const int cache = core / parts[2];
    topology.push_back({.number = cpu, .core = core, .cache = cache, .node = cache / parts[1]});
  }
  return topology;
}

}  // namespace magpie::cpus
