// victims.h: in which order a thief of the simulation looks at the other Ps.
//
// One object per P. begin() starts a round, next() names victims until it returns none. An order by
// the product's topology fits in as one more class.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "lab/policy.h"

namespace magpie::lab {

// Which Ps are near each other: groups of `group` Ps with consecutive numbers; 0: all are.
struct Topology {
  std::uint32_t group = 0;
  bool are_near(std::uint32_t a, std::uint32_t b) const {
    return group == 0 || a / group == b / group;
  }
};

inline constexpr std::uint32_t kNoVictim = ~std::uint32_t{0};

class Victims {
 public:
  virtual ~Victims() = default;
  virtual void begin(base::Random& random) = 0;
  // Never the thief itself. kNoVictim: the round is over.
  virtual std::uint32_t next() = 0;
};

// `waiting` is how many stand in the ring of each P, for orders that look at it.
std::unique_ptr<Victims> make_victims(Order order, std::uint32_t thief, std::uint32_t procs,
                                      Topology topology, const std::vector<std::uint32_t>& waiting);

}  // namespace magpie::lab
