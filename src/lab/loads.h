// loads.h: what the goroutines of a simulation do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lab/machine.h"

namespace magpie::lab {

inline constexpr std::uint64_t kForEver = ~std::uint64_t{0};

struct LoadOptions {
  std::uint64_t count = 0;  // goroutines, requests, or rounds of a pair; 0: as the load likes
  Ns work = 0;              // of one of them; 0: as the load likes
  double busy = 0.7;        // of open loads: the part of all Ps that they need
  double skew = 0;          // of loads that each P has of its own: see HomeArrivals
};

struct LoadInfo {
  std::string name, text;
  std::uint64_t count;  // the default, for one P
  Ns work;
};
const std::vector<LoadInfo>& loads();

// Throws std::invalid_argument with the names that there are.
std::unique_ptr<Load> make_load(const std::string& name, const LoadOptions& options,
                                std::uint32_t procs);

// Every P has Poisson arrivals of its own, and exponential work with the mean `unit`. The first
// half of the Ps gets more by `skew`, the other half less. Ends after `count` arrivals.
class HomeArrivals : public Load {
 public:
  HomeArrivals(double busy, Ns unit, double skew = 0, std::uint64_t count = kForEver)
      : left_(count), busy_(busy), skew_(skew), unit_(unit) {}
  void begin(Machine& machine) override;
  Step step(Machine& machine, TaskId task) override;
  void called(Machine& machine, std::uint64_t number) override;

  // The load that arrived between these times: chance makes it differ from the one wanted.
  void count_between(Ns from, Ns until) { from_ = from, until_ = until; }
  double busy_seen() const {
    return arrivals_per_p_ * (work_ / jobs_) / static_cast<double>(until_ - from_);
  }

 private:
  Ns gap(Machine& machine, std::uint64_t p) const;

  Ns from_ = 0, until_ = 0;
  double arrivals_per_p_ = 0, work_ = 0, jobs_ = 0;

  std::uint64_t left_;
  double busy_, skew_;
  Ns unit_;
};

// Each P starts a batch of goroutines with `work` each, at random times. Ends after `count` of
// them.
class HomeBatches : public Load {
 public:
  HomeBatches(double busy, Ns work, std::uint32_t size, std::uint64_t count = kForEver)
      : batches_left_(count == kForEver ? kForEver : std::max<std::uint64_t>(1, count / size)),
        busy_(busy),
        work_(work),
        size_(size) {}
  void begin(Machine& machine) override;
  void called(Machine& machine, std::uint64_t p) override;
  Step step(Machine& machine, TaskId task) override;

 private:
  Ns gap(Machine& machine) const;

  std::uint64_t batches_left_;
  double busy_;
  Ns work_;
  std::uint32_t size_;
  std::vector<std::uint32_t> left_;  // of each goroutine: how many it has still to start
};

// All goroutines stand in the ring of the first P when time begins, with `work` each.
class Heap : public Load {
 public:
  Heap(std::uint64_t count, Ns work) : count_(count), work_(work) {}
  void begin(Machine& machine) override;
  Step step(Machine&, TaskId) override { return {work_, What::end}; }

 private:
  std::uint64_t count_;
  Ns work_;
};

}  // namespace magpie::lab
