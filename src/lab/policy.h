// policy.h: the policy that a simulation runs: the product's, or one with other rules.
//
// The default of each field is what the product does, decided by the functions of sched/policy.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/costs.h"
#include "sched/policy.h"

namespace magpie::lab {

enum class Amount : std::uint8_t { one, quarter, half, all };       // of the victim's ring
enum class End : std::uint8_t { oldest, newest };                   // that is stolen
enum class Runnext : std::uint8_t { never, late, at_once };         // stolen
enum class Spin : std::uint8_t { off, fixed, adaptive, for_ever };  // of searchers
enum class First : std::uint8_t { local, global };                  // looked at first
enum class Order : std::uint8_t {
  rings,        // the product's (sched/victims.h): near ones first, no idle ones
  uniform,      // all others, at random
  near_first,   // all near ones at random, then all far ones
  two_random,   // the fuller of two, then all others
  by_number,    // always the lowest number first
  one_random,   // one try a round: any other P
  mostly_near,  // one try a round: a near P, or in one of 20 rounds a far one
  fuller        // one try a round: the fuller of two
};

struct Policy {
  Amount amount = Amount::half;
  End end = End::oldest;
  Runnext runnext = Runnext::late;
  Spin spin = Spin::adaptive;
  First first = First::local;
  Order order = Order::rings;
  std::uint64_t least = 1;  // a ring with fewer is left alone
  std::int32_t look_every = sched::policy::kLookEvery;
  std::uint64_t slots = sched::policy::kRingSlots;
  Ns patience = sched::policy::kPatienceNs;
  int rounds = sched::policy::kStealRounds;
  bool throttles = true;     // at most one wake-up under way, at most half of the busy Ps search
  bool uses_runnext = true;  // false: goroutines that are started or woken go to the ring
  bool reserves = true;      // the owner sets batches aside
  bool detours = true;       // of the product's order: to far Ps that hold many goroutines
  bool wakes = true;         // false: an idle P sleeps until something arrives in its own ring

  std::uint64_t to_steal(std::uint64_t waiting) const;
  std::uint32_t budget_after(bool success, std::uint32_t rounds_before) const;
};

// Changes a field by its name, as in "amount=one". Throws std::invalid_argument with what there is.
void set(Policy& policy, const std::string& assignment);

// The alternatives that are compared with the product, each a change or a few separated by commas.
struct Alternative {
  std::string name;
  std::string changes;  // empty: the product
};
const std::vector<Alternative>& alternatives();
Policy policy_of(const std::string& changes);

}  // namespace magpie::lab
