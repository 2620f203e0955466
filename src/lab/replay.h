// replay.h: takes from a trace what its goroutines did, and lets the simulation do it again.
//
// Of each goroutine the recording keeps the stretches of computing and what came after each: it
// started or woke another, waited, yielded, slept, ended. What came from outside (the network,
// plain threads) comes at the same time again; a wait for a timer lasts as long as in the trace.
// Times that the trace shows as blocking calls or without a P count as waits.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/histogram.h"
#include "lab/machine.h"
#include "trace/reader.h"

namespace magpie::lab {

class Recording {
 public:
  struct Outside {  // woken or made by no goroutine, or alive when the trace began
    Ns time;
    std::uint32_t goroutine;
    bool is_birth;
  };
  struct Act {
    Ns compute = 0;
    What what = What::end;
    std::uint32_t other = 0;  // of spawn and wake
    Ns sleep_ns = 0;
  };

  std::size_t goroutines() const { return acts_.size(); }
  std::uint32_t procs() const { return procs_; }
  const analysis::Histogram<>& latency() const { return latency_; }  // as measured
  const std::vector<std::vector<Act>>& acts() const { return acts_; }
  const std::vector<Outside>& outside() const { return outside_; }

 private:
  class Maker;
  friend Recording record(trace::Reader& reader);

  std::uint32_t procs_ = 1;
  std::vector<std::vector<Act>> acts_;
  std::vector<Outside> outside_;
  analysis::Histogram<> latency_;
};

Recording record(trace::Reader& reader);
Result replay(const Recording& recording, const Setup& setup);

}  // namespace magpie::lab
