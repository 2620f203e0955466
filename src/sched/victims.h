// victims.h: at which Ps a thief looks, and in which order; which idle P a waker starts.
// `magpie lab` uses the same code. The numbers are those of policy.h.
//
//     distance   the Ps                                       looked at
//     sibling    of the same core                             in every round, first
//     cache      under the same last-level cache              in every round
//     node       of the same node, under another cache        from the second round on
//     far        of other nodes                               in the last round
//
// Random     At each distance the walk begins anywhere and goes round. Otherwise thieves would
//            meet.
// Bounded    Idle Ps are passed by without a look at them, and a round looks at no more than
//            kLooksPerDistance Ps at each distance. So a search does not take longer on a machine
//            with more Ps. Work that it missed is found by the second look of rest(), which is
//            complete.
// Load       Some searches begin with a detour to far Ps, for Ps that hold many goroutines:
//            policy::Detours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpus/homes.h"
#include "sched/idle_mask.h"
#include "sched/policy.h"

namespace magpie::sched {

using policy::Distance;

// Where `victim` is, seen from a P with this home.
constexpr Distance distance_of(const cpus::Home& home, std::uint32_t victim) {
  if (victim == home.sibling) return Distance::sibling;
  if (home.cache.has(victim)) return Distance::cache;
  return home.node.has(victim) ? Distance::node : Distance::far;
}

inline constexpr std::uint32_t kNoP = ~std::uint32_t{0};

// An idle P near P `self`, which has this home: itself, or one under the same cache, else of the
// same node. The other thread of its core comes last: that core is busy. kNoP: none is near.
inline std::uint32_t idle_near(const cpus::Home& home, std::uint32_t self, const IdleMask& idle) {
  for (cpus::Range range : {cpus::Range{self, self + 1}, home.cache, home.node}) {
    std::uint32_t found = idle.next_idle(range.first, range.end);
    if (found == home.sibling && found != self) found = idle.next_idle(found + 1, range.end);
    if (found < range.end) return found;
  }
  return idle.next_idle(home.sibling, home.sibling + 1) == home.sibling ? home.sibling : kNoP;
}

class Victims {
 public:
  // The home must not change meanwhile. `detours` is what the thief remembers from one search to
  // the next.
  Victims(const cpus::Home& home, std::uint32_t thief, std::uint32_t procs, const IdleMask& idle,
          policy::Detours& detours)
      : home_(home), idle_(idle), detours_(detours), thief_(thief), procs_(procs) {}

  void begin_round(int round, std::uint32_t random) {
    random_ = random;
    last_ = policy::farthest(round);
    is_over_ = false;
    is_detour_ = round == 0 && has_far() && detours_.begins_with_one();
    begin_at(is_detour_ ? Distance::cache : Distance::sibling);
    if (is_detour_) looks_ = 1;  // to compare with
    waiting_near_ = 0;
  }

  // Never the thief itself. kNoP: the round is over.
  std::uint32_t next() {
    while (!is_over_) {
      at_ = looks_ != 0 ? idle_.next_busy(at_, limit_) : limit_;
      if (at_ < limit_) {
        if (inner_.has(at_)) {
          at_ = inner_.end;
          continue;
        }
        std::uint32_t victim = at_++;
        bool is_seen = distance_ == Distance::cache && victim == home_.sibling;
        if (victim == thief_ || is_seen) continue;
        --looks_;
        return victim;
      }
      if (!goes_round()) go_on();
    }
    return kNoP;
  }

  Distance distance() const { return distance_; }  // of the last victim

  // Whether the last victim should be robbed: `waiting` goroutines stand in its queue.
  bool is_worth_it(std::size_t waiting) {
    if (!is_detour_) return true;
    if (distance_ == Distance::far) return policy::is_worth_a_detour(waiting, waiting_near_);
    waiting_near_ = waiting;
    return false;
  }
  // It was.
  void note_robbed() {
    if (is_detour_) detours_.has_paid = true;
  }

 private:
  bool has_far() const { return home_.node.size() != procs_; }

  // The walk at this distance began in the middle, so its first half is yet to come.
  bool goes_round() {
    if (limit_ == start_ || looks_ == 0) return false;
    limit_ = start_;
    at_ = range_.first;
    return true;
  }
  void go_on() {
    if (is_detour_ && distance_ != Distance::far) {
      begin_at(Distance::far);
      looks_ = policy::kDetourLooks;
    } else if (is_detour_) {
      is_detour_ = detours_.has_paid = false;
      begin_at(Distance::sibling);
    } else if (distance_ < last_) {
      begin_at(static_cast<Distance>(static_cast<int>(distance_) + 1));
    } else {
      is_over_ = true;
    }
  }
  void begin_at(Distance distance) {
    distance_ = distance;
    inner_ = {};
    switch (distance) {
      case Distance::sibling:
        range_ = {home_.sibling, home_.sibling + 1};
        break;
      case Distance::cache:
        range_ = home_.cache;
        break;
      case Distance::node:
        range_ = home_.node;
        inner_ = home_.cache;
        break;
      case Distance::far:
        range_ = {0, procs_};
        inner_ = home_.node;
        break;
    }
    looks_ = range_ == inner_ ? 0 : policy::kLooksPerDistance;
    start_ = at_ = range_.first + random_ % range_.size();
    limit_ = range_.end;
  }

  const cpus::Home& home_;
  const IdleMask& idle_;
  policy::Detours& detours_;
  const std::uint32_t thief_, procs_;
  std::uint32_t random_ = 0;
  Distance last_ = Distance::far, distance_ = Distance::sibling;
  bool is_detour_ = false, is_over_ = true;
  std::size_t waiting_near_ = 0;
  cpus::Range range_, inner_;  // the Ps at this distance; nearer ones among them
  std::uint32_t looks_ = 0, start_ = 0, at_ = 0, limit_ = 0;
};

}  // namespace magpie::sched
