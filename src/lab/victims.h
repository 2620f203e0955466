// victims.h: in which order a thief of the simulation looks at the other Ps.
//
// One object per P. begin() starts a round, next() names victims until it returns none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "cpus/homes.h"
#include "lab/policy.h"
#include "sched/idle_mask.h"
#include "sched/victims.h"

namespace magpie::lab {

// Which Ps are near each other: groups of `group` Ps with consecutive numbers; 0: all are.
struct Topology {
  std::uint32_t group = 0;
  bool are_near(std::uint32_t a, std::uint32_t b) const {
    return group == 0 || a / group == b / group;
  }
  cpus::Home home_of(std::uint32_t p, std::uint32_t procs) const;
};

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
std::unique_ptr<Victims> make_victims(Order order, std::uint32_t thief, std::uint32_t procs,
                                      Topology topology, const sched::IdleMask& idle,
                                      const std::vector<std::uint32_t>& waiting);

}  // namespace magpie::lab
