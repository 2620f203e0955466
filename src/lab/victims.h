// victims.h: in which order a thief of the simulation looks at the other Ps.
//
// One object per P. begin() starts a round, next() names victims until it returns none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "cpus/homes.h"
#include "lab/policy.h"
#include "sched/idle_mask.h"
#include "sched/victims.h"

namespace magpie::lab {

// Which Ps are near each other: groups of `group` Ps with consecutive numbers, each a node with one
// cache; 0: all are.
struct Topology {
  std::uint32_t group = 0;
  std::vector<cpus::Home> homes;  // not empty: these instead, for nodes with several caches

  bool is_flat() const { return group == 0 && homes.empty(); }
  bool are_near(std::uint32_t a, std::uint32_t b) const {
    if (!homes.empty()) return homes[a].node.has(b);
    return group == 0 || a / group == b / group;
  }
  bool are_under_one_cache(std::uint32_t a, std::uint32_t b) const {
    return homes.empty() ? are_near(a, b) : homes[a].cache.has(b);
  }
  std::uint32_t node_of(std::uint32_t p) const {
    if (!homes.empty()) return homes[p].node_number;
    return group == 0 ? 0 : p / group;
  }
  cpus::Home home_of(std::uint32_t p, std::uint32_t procs) const;
};
// The machine of a text as "node:2 l3:2 core:8", with a P for each CPU or fewer. Throws
// std::invalid_argument.
Topology topology_of(const std::string& levels, std::uint32_t procs);

inline constexpr std::uint32_t kNoVictim = sched::kNoP;

class Victims {
 public:
  virtual ~Victims() = default;
  virtual void begin(base::Random& random, int round) = 0;
  // Never the thief itself. kNoVictim: the round is over.
  virtual std::uint32_t next() = 0;
  // Whether the last one, where so many wait, should be robbed; and that it was.
  virtual bool is_worth_it(std::uint64_t) { return true; }
  virtual void note_robbed() {}
};

// `waiting` is how many stand in the ring of each P, for orders that look at it.
std::unique_ptr<Victims> make_victims(const Policy& policy, std::uint32_t thief,
                                      std::uint32_t procs, const Topology& topology,
                                      const sched::IdleMask& idle,
                                      const std::vector<std::uint32_t>& waiting);

}  // namespace magpie::lab
