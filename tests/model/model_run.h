// model_run.h: runs the scenarios of a model, or of its mutant that the command line names (see
// mutant.h), and says how much was explored.
//
//   full      every interleaving, every value a load may return
//   bounded   the same with at most so many preemptions; switches from threads that end, block or
//             yield are free
//   random    so many random executions, always the same ones
//
// In full and bounded searches a load returns the newest value or the one before it, in random ones
// also the one before that: Relacy keeps no more.
//
// Relacy is a template for each scenario and takes seconds to compile. Here it only knows how many
// threads there are, and is compiled once for all models, in model_run.cc.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model_atomic.h"

namespace model {

struct How {
  rl::scheduler_type_e type;
  unsigned preemptions;
  rl::iteration_t executions;
  std::string text;
};
inline How full() { return {rl::sched_full, 0, 0, "every interleaving"}; }
inline How bounded(unsigned n) {
  return {rl::sched_bound, n, 0, "at most " + std::to_string(n) + " preemptions"};
}
inline How random(unsigned n) { return {rl::sched_random, 0, n, "random"}; }

// One execution: made anew for each, and destroyed after it.
struct AnyScenario {
  AnyScenario() = default;
  AnyScenario(const AnyScenario&) = delete;
  AnyScenario& operator=(const AnyScenario&) = delete;
  virtual ~AnyScenario() = default;
  virtual void before() {}
  virtual void thread(unsigned index) = 0;
  virtual void after() {}
};
template <unsigned threads>
struct Scenario : AnyScenario {
  static constexpr unsigned kThreads = threads;
};

// How to make one. Not by new, which is Relacy's: whether freed memory is reused would be one more
// thing to explore.
struct ScenarioKind {
  unsigned threads;
  std::size_t size, alignment;
  AnyScenario* (*make_at)(void* place);
};

class Runs {
 public:
  Runs(int argc, char** argv) : is_mutant_(argc > 1) {
    if (is_mutant_) Mutant::choose(argv[1]);
  }

  template <class Explored>
  Runs& explore(const char* name, const How& how) {
    scenarios_.push_back({{Explored::kThreads, sizeof(Explored), alignof(Explored),
                           [](void* place) -> AnyScenario* { return new (place) Explored(); }},
                          name,
                          how});
    return *this;
  }

  // Explores the scenarios in turn, until one fails. The exit code: 1 if one did.
  // A mutant fails in one of them, most often soon: so a small part of each comes first.
  int report();

 private:
  struct Named {
    ScenarioKind kind;
    const char* name;
    How how;
  };
  void explore(const Named& scenario, const How& how);

  const bool is_mutant_;
  std::vector<Named> scenarios_;
  bool failed_ = false;
  rl::iteration_t total_ = 0;
};

}  // namespace model
