// models.h: published models of stealing, as the lab computes them.
//
// Each function gives a number that a paper predicts; the tests compare them (lab/models_test.cc),
// and `magpie lab models` prints them side by side. Most run the Machine with the costs of the
// model. Where a model has more goroutines, or another rule, than the Machine, the same decision of
// sched/policy.h runs in a simulation of queue lengths.
#pragma once

#include <cstdint>
#include <vector>

namespace magpie::lab {

// Tchiboukdjian, Gast, Trystram (2013): W unit tasks on one of m processors, one step a try, half
// of the waiting tasks are taken. The mean of (makespan - W/m) / log2 W.
double steal_half_term(std::uint32_t m, std::uint64_t tasks, int runs, std::uint64_t seed);
double steal_half_term_of_machine(std::uint32_t m, std::uint64_t tasks, int runs,
                                  std::uint64_t seed);

// Mitzenmacher (1998): Poisson arrivals at each processor, exponential work of mean 1; a processor
// that runs empty tries one victim once, and takes one task of at least two. The mean time in the
// system: predicted for infinitely many processors, and of the machine.
double steal_one_time_predicted(double busy);
struct Measured {
  double time = 0;
  double busy = 0;  // the load that this run really had: chance makes it differ from the one wanted
};
Measured steal_one_time_of_machine(std::uint32_t procs, double busy, double units,
                                   std::uint64_t seed);

// Van Houdt (2018): idle servers look for waiting jobs (stealing), or servers with waiting jobs
// look for idle ones (sharing), each at rate `rate`.
struct Probing {
  double time = 0;      // mean, in the system
  double messages = 0;  // per server and unit of time
};
enum class Who : std::uint8_t { thieves, sharers };
Probing probe(Who who, double busy, double rate, std::uint32_t servers, double units,
              std::uint64_t seed);
// The load at which both need equally many messages for the same rate.
double border_of_sharing(double rate, std::uint32_t servers, double units, std::uint64_t seed);

// Gast, Khatiri, Trystram, Wagner (2018): a request and its answer take `latency` steps each. The
// mean of makespan - W/p.
double latency_term(std::uint32_t procs, std::uint64_t tasks, double latency, int runs,
                    std::uint64_t seed);

// Gast, Gaujal (2010): two clusters with unequal load; near steals are cheap. Mean waits in units
// of work.
struct Clusters {
  double mostly_near = 0;  // a thief tries a near victim, in one of 20 tries a far one
  double fuller = 0;       // the fuller of any two
};
Clusters clusters(double busy, double skew, std::uint64_t seed);

// Hendler, Shavit (2002): how far the fullest of m queues is above the mean, on average over time,
// when W tasks begin on one of them and each process balances in every second step.
double balance_excess(std::uint32_t m, std::uint64_t tasks, std::uint64_t seed);

// Blumofe, Leiserson (1999): a binary fork-join tree.
struct ForkJoinFit {
  double t1 = 0, critical = 0, tp = 0;  // units of a leaf's work
  double steals = 0;
  double term() const { return (tp - t1 / procs) / critical; }
  double steals_per_path() const { return steals / (procs * critical); }
  double procs = 1;
};
ForkJoinFit fork_join(std::uint32_t procs, std::uint32_t depth, std::uint64_t seed);

}  // namespace magpie::lab
