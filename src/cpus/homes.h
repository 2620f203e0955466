// homes.h: on which CPU each P is at home, and which Ps are near it.
//
//     P        0 1 2 3 4 5 6 7 8 ...          Ps of one cache have consecutive numbers,
//     cache   |--a--|--b--|--c--|             and so have Ps of one node: what is near a P
//     node    |-----0-----|--1--|             is a range.
//
// Few Ps     Fewer Ps than CPUs: each has a core of its own as long as there are any, and they fill
//            one node after the other. Few Ps are all near each other.
// Many Ps    More Ps than CPUs: each cache has its share. Inside it they go round its CPUs, so that
//            neighbours are not on the same CPU.
// Home       With Options::pin the holder of a P runs there and nowhere else. Without, the kernel
//            decides. It rarely moves a thread to another node, and the scheduler gives an M that
//            wakes up the P that it had, or one near it.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpus/topology.h"

namespace magpie::cpus {

// Numbers of Ps, from `first` to before `end`.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t end = 0;

  std::uint32_t size() const { return end - first; }
  bool has(std::uint32_t p) const { return p - first < end - first; }
  bool operator==(const Range&) const = default;
};

struct Home {
  int cpu = -1;                   // the kernel's number; -1: none
  std::uint32_t sibling = 0;      // another P of the same core, or the P itself
  Range cache;                    // Ps under the same cache, the P itself included
  Range node;                     // Ps of the same node, which are at least those
  bool is_flat = true;            // all Ps are under one cache
  std::uint32_t node_number = 0;  // of the nodes that have Ps, from 0
};

// One for each P. If there is no CPU at all, none has a home and all are near.
[[nodiscard]] std::vector<Home> make_homes(Topology topology, std::uint32_t procs);

// How many nodes have Ps.
[[nodiscard]] std::uint32_t count_nodes(std::span<const Home> homes);

}  // namespace magpie::cpus
