// loads.h: what the goroutines of a simulation do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lab/machine.h"

namespace magpie::lab {

struct LoadOptions {
  std::uint64_t count = 0;  // goroutines, requests, or rounds of a pair; 0: as the load likes
  Ns work = 0;              // of one of them; 0: as the load likes
  double busy = 0.7;        // of open loads: the part of all Ps that they need
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

// For the published models: every P has Poisson arrivals of its own, and exponential work with the
// mean `unit`. The first half of the Ps gets more by `skew`, the other half less.
class HomeArrivals : public Load {
 public:
  HomeArrivals(double busy, Ns unit, double skew = 0) : busy_(busy), skew_(skew), unit_(unit) {}
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

  double busy_, skew_;
  Ns unit_;
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
