// homes.cc: see homes.h.

#include "cpus/homes.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>

namespace magpie::cpus {
namespace {

auto by_cache(const Cpu& cpu) { return std::tuple(cpu.node, cpu.cache); }
auto by_core(const Cpu& cpu) { return std::tuple(cpu.node, cpu.cache, cpu.core); }

struct Seat {
  Cpu cpu;
  int thread = 0;  // of its core
};

// In order of caches. In each cache the first threads of its cores come before the second ones.
std::vector<Seat> seats_for(Topology topology, std::uint32_t procs) {
  std::ranges::stable_sort(topology, {}, by_core);
  std::vector<Seat> seats;
  for (const Cpu& cpu : topology) {
    const bool is_new = seats.empty() || by_core(seats.back().cpu) != by_core(cpu);
    seats.push_back({cpu, is_new ? 0 : seats.back().thread + 1});
  }
  if (procs < seats.size()) {
    std::ranges::stable_sort(seats, {}, &Seat::thread);
    seats.resize(procs);
  }
  std::ranges::stable_sort(
      seats, {}, [](const Seat& seat) { return std::tuple(by_cache(seat.cpu), seat.thread); });
  return seats;
}

// The Ps of one cache. `first` is the first of them.
void fill_cache(std::span<const Seat> seats, std::span<Home> all, Range range) {
  const std::size_t count = seats.size();
  for (std::uint32_t p = range.first; p < range.end; ++p) {
    const std::size_t at = p - range.first;
    Home& home = all[p];
    home.cpu = seats[at % count].cpu.number;
    home.cache = range;
    home.is_flat = range.size() == all.size();
    home.sibling = p;
    // The next one of the core, going round.
    for (std::size_t i = 1; i < range.size(); ++i) {
      const std::size_t other = (at + i) % range.size();
      if (by_core(seats[other % count].cpu) != by_core(seats[at % count].cpu)) continue;
      home.sibling = range.first + static_cast<std::uint32_t>(other);
      break;
    }
  }
}

}  // namespace

std::vector<Home> make_homes(Topology topology, std::uint32_t procs) {
  std::vector<Home> homes(procs);
  const std::vector<Seat> seats = seats_for(std::move(topology), procs);
  if (seats.empty()) {
    for (std::uint32_t p = 0; p < procs; ++p)
      homes[p] = {.cpu = -1, .sibling = p, .cache = {0, procs}, .node = {0, procs}};
    return homes;
  }
  // The P with which the share of the first `count` seats ends.
  const auto share = [&](std::size_t count) {
    return static_cast<std::uint32_t>(count * procs / seats.size());
  };
  std::size_t node_begin = 0;
  std::uint32_t node_number = 0;
  for (std::size_t begin = 0, end = 0; begin < seats.size(); begin = end) {
    const Cpu& cpu = seats[begin].cpu;
    while (end < seats.size() && by_cache(seats[end].cpu) == by_cache(cpu)) ++end;
    fill_cache(std::span(seats).subspan(begin, end - begin), homes, {share(begin), share(end)});
    if (seats[node_begin].cpu.node != cpu.node) node_begin = begin;
    const bool ends_node = end == seats.size() || seats[end].cpu.node != cpu.node;
    if (!ends_node) continue;
    const Range node = {share(node_begin), share(end)};
    for (std::uint32_t p = node.first; p < node.end; ++p) {
      homes[p].node = node;
      homes[p].node_number = node_number;
    }
    if (node.size() != 0) ++node_number;
  }
  return homes;
}

std::uint32_t count_nodes(std::span<const Home> homes) {
  return homes.empty() ? 0 : homes.back().node_number + 1;  // nodes are ranges, in order
}

}  // namespace magpie::cpus
