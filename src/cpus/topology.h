// topology.h: which CPUs share a core, a cache and a node.
//
//     node      CPUs with the same memory near them (NUMA)
//     cache     CPUs under the same last-level cache; a node may have several (L3 slices)
//     core      CPUs that are threads of one core (SMT siblings)
//
// The kernel tells it in small files. A file that is missing or makes no sense says nothing: then a
// core is its CPU, a cache is its node, and there is one node. So nothing here fails, and a machine
// that is not understood is a flat one.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace magpie::cpus {

// Equal numbers mean that two CPUs share the thing. The numbers have no other meaning.
struct Cpu {
  int number = 0;  // the kernel's
  int core = 0;
  int cache = 0;
  int node = 0;

  bool operator==(const Cpu&) const = default;
};

using Topology = std::vector<Cpu>;

enum class Cores {
  read,    // which CPUs share a core, too
  ignore,  // each CPU is a core of its own; saves a file for each CPU
};

// `numbers` are the CPUs that count, see affinity_list(). `root` is put before every path; empty
// except in tests. If all CPUs share the cache of the first, and are in one node, that takes three
// files and those of the cores; else a few for each CPU.
[[nodiscard]] Topology read_topology(std::span<const int> numbers, Cores cores,
                                     const std::string& root = "");

// A machine that is only a text, for tests: levels from the outermost, each with the number of its
// parts, as in "node:2 l3:2 core:4 pu:2". A level may be left out. None: this makes no sense, or
// has more than 4096 CPUs.
[[nodiscard]] std::optional<Topology> parse_topology(std::string_view text);

// The CPUs of a list of the kernel's, as "0-3,8": in order of the text. What is not understood ends
// it.
[[nodiscard]] std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace magpie::cpus
