#include "lab/victims.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace magpie::lab {
namespace {

// Visits [first, first + n) once each: start anywhere, step by a number that shares no factor with
// n. All starts and all such steps are equally likely.
class Walk {
 public:
  void begin(std::uint32_t first, std::uint32_t n, base::Random& random) {
    first_ = first;
    left_ = n_ = n;
    if (n == 0) return;
    at_ = random.next() % n;
    step_ = n == 1 ? 1 : 1 + random.next() % (n - 1);
    while (std::gcd(step_, n) != 1) step_ = step_ % n + 1;
  }
  bool is_over() const { return left_ == 0; }
  std::uint32_t next() {
    --left_;
    at_ = (at_ + step_) % n_;
    return first_ + at_;
  }

 private:
  std::uint32_t first_ = 0, left_ = 0, n_ = 0, at_ = 0, step_ = 1;
};

class Rings : public Victims {
 public:
  Rings(const Policy& policy, std::uint32_t thief, std::uint32_t procs, const Topology& topology,
        const sched::IdleMask& idle)
      : home_(topology.home_of(thief, procs)),
        makes_detours_(policy.detours),
        victims_(home_, thief, procs, idle, detours_) {}
  void begin(base::Random& random, int round) override {
    if (!makes_detours_) detours_ = {};  // it never counts as far as the search with the detour
    victims_.begin_round(round, random.next());
  }
  std::uint32_t next() override { return victims_.next(); }
  bool is_worth_it(std::uint64_t waiting) override { return victims_.is_worth_it(waiting); }
  void note_robbed() override { victims_.note_robbed(); }

 private:
  const cpus::Home home_;
  const bool makes_detours_;
  sched::policy::Detours detours_;
  sched::Victims victims_;
};

class Uniform : public Victims {
 public:
  Uniform(std::uint32_t thief, std::uint32_t procs) : thief_(thief), procs_(procs) {}
  void begin(base::Random& random, int) override { walk_.begin(0, procs_, random); }
  std::uint32_t next() override {
    while (!walk_.is_over())
      if (const std::uint32_t victim = walk_.next(); victim != thief_) return victim;
    return kNoVictim;
  }

 private:
  std::uint32_t thief_, procs_;
  Walk walk_;
};

class NearFirst : public Victims {
 public:
  NearFirst(std::uint32_t thief, std::uint32_t procs, const Topology& topology)
      : thief_(thief), procs_(procs), node_(topology.home_of(thief, procs).node) {}
  void begin(base::Random& random, int) override {
    near_.begin(node_.first, node_.size(), random);
    all_.begin(0, procs_, random);
  }
  std::uint32_t next() override {
    while (!near_.is_over())
      if (const std::uint32_t victim = near_.next(); victim != thief_) return victim;
    while (!all_.is_over()) {
      const std::uint32_t victim = all_.next();
      if (!node_.has(victim)) return victim;
    }
    return kNoVictim;
  }

 private:
  std::uint32_t thief_, procs_;
  cpus::Range node_;
  Walk near_, all_;
};

class Random1 : public Victims {
 public:
  Random1(std::uint32_t thief, std::uint32_t procs) : thief_(thief), procs_(procs) {}
  void begin(base::Random& random, int) override {
    victim_ = kNoVictim;
    if (procs_ < 2) return;
    victim_ = random.next() % (procs_ - 1);
    if (victim_ >= thief_) ++victim_;
  }
  std::uint32_t next() override { return std::exchange(victim_, kNoVictim); }

 private:
  std::uint32_t thief_, procs_, victim_ = kNoVictim;
};

class MostlyNear : public Victims {
 public:
  MostlyNear(std::uint32_t thief, std::uint32_t procs, const Topology& topology)
      : thief_(thief), procs_(procs), topology_(topology) {}
  void begin(base::Random& random, int) override {
    const bool near = random.next() % 20 != 0 || topology_.group == 0;
    victim_ = kNoVictim;
    if (topology_.group == 1 || procs_ < 2) return;
    do {
      victim_ = random.next() % procs_;
    } while (victim_ == thief_ || topology_.are_near(thief_, victim_) != near);
  }
  std::uint32_t next() override { return std::exchange(victim_, kNoVictim); }

 private:
  std::uint32_t thief_, procs_, victim_ = kNoVictim;
  const Topology& topology_;
};

// The fuller of two, then all others: load before distance.
class Random2 : public Victims {
 public:
  enum class Then { others, nobody };
  Random2(std::uint32_t thief, std::uint32_t procs, const std::vector<std::uint32_t>& waiting,
          Then then)
      : one_(thief, procs), others_(thief, procs), waiting_(waiting), then_(then) {}
  void begin(base::Random& random, int) override {
    one_.begin(random, 0);
    const std::uint32_t a = one_.next();
    one_.begin(random, 0);
    const std::uint32_t b = one_.next();
    first_ = a == kNoVictim || waiting_[a] >= waiting_[b] ? a : b;
    others_.begin(random, 0);
  }
  std::uint32_t next() override {
    const std::uint32_t first = std::exchange(first_, kNoVictim);
    if (first != kNoVictim) return first;
    return then_ == Then::others ? others_.next() : kNoVictim;
  }

 private:
  Random1 one_;
  Uniform others_;
  const std::vector<std::uint32_t>& waiting_;
  Then then_;
  std::uint32_t first_ = kNoVictim;
};

class ByNumber : public Victims {
 public:
  ByNumber(std::uint32_t thief, std::uint32_t procs) : thief_(thief), procs_(procs) {}
  void begin(base::Random&, int) override { at_ = 0; }
  std::uint32_t next() override {
    if (at_ == thief_) ++at_;
    return at_ < procs_ ? at_++ : kNoVictim;
  }

 private:
  std::uint32_t thief_, procs_, at_ = 0;
};

}  // namespace

Topology topology_of(const std::string& levels, std::uint32_t procs) {
  const auto machine = cpus::parse_topology(levels);
  if (!machine) throw std::invalid_argument("no machine is like " + levels);
  Topology topology;
  topology.homes = cpus::make_homes(*machine, procs);
  return topology;
}

cpus::Home Topology::home_of(std::uint32_t p, std::uint32_t procs) const {
  if (!homes.empty()) return homes[p];
  cpus::Range near = {0, procs};
  if (group != 0) near = {p / group * group, std::min(procs, p / group * group + group)};
  return {.cpu = -1, .sibling = p, .cache = near, .node = near, .is_flat = near.size() == procs};
}

std::unique_ptr<Victims> make_victims(const Policy& policy, std::uint32_t thief,
                                      std::uint32_t procs, const Topology& topology,
                                      const sched::IdleMask& idle,
                                      const std::vector<std::uint32_t>& waiting) {
  switch (policy.order) {
    case Order::rings:
      return std::make_unique<Rings>(policy, thief, procs, topology, idle);
    case Order::uniform:
      return std::make_unique<Uniform>(thief, procs);
    case Order::near_first:
      return std::make_unique<NearFirst>(thief, procs, topology);
    case Order::one_random:
      return std::make_unique<Random1>(thief, procs);
    case Order::two_random:
      return std::make_unique<Random2>(thief, procs, waiting, Random2::Then::others);
    case Order::mostly_near:
      return std::make_unique<MostlyNear>(thief, procs, topology);
    case Order::fuller:
      return std::make_unique<Random2>(thief, procs, waiting, Random2::Then::nobody);
    case Order::by_number:
      return std::make_unique<ByNumber>(thief, procs);
  }
  return nullptr;
}

}  // namespace magpie::lab
