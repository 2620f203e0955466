// costs.h: what the steps of the scheduler cost in the simulation, in nanoseconds.
//
// The defaults were measured by `magpie lab calibrate` on the machine of docs/benchmarks.md (two
// virtual CPUs of one node). What is far costs three times what is near: assumed, as that machine
// has nothing far.
#pragma once

#include <cstdint>
#include <string>

namespace magpie::lab {

using Ns = std::int64_t;

struct Costs {
  Ns pop = 5;            // take the next goroutine of the own ring or of runnext
  Ns switching = 18;     // from one goroutine to the next
  Ns spawn = 1;          // start a goroutine, put it in a queue, and end it
  Ns ready = 9;          // make a waiting goroutine ready
  Ns probe_near = 44;    // look at the ring of another P, in vain
  Ns probe_far = 132;    //
  Ns steal_near = 132;   // take goroutines from another P
  Ns steal_far = 396;    //
  Ns miss = 88;          // run a goroutine that ran, or was made, on another P
  Ns miss_far = 264;     //
  Ns global = 94;        // take from, or put into, the global queue
  Ns wake_call = 4'000;  // paid by the waker of a sleeping thread
  Ns wake = 10'000;      // until the woken thread runs
  Ns spin_round = 812;   // a searcher looks at all queues, and pauses
  Ns timer = 60;         // fire a timer

  std::string text() const;  // one line, for the header of a table
};

}  // namespace magpie::lab
