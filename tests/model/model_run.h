// model_run.h: runs the scenarios of a model, or of its mutant that the command line names (see mutant.h), and says how
// much was explored.
//
//   full      every interleaving, every value a load may return
//   bounded   the same with at most so many preemptions; switches from threads that end, block or
//             yield are free
//   random    so many random executions, always the same ones
//
// In full and bounded searches a load returns the newest value or the one before it, in random ones
// also the one before that: Relacy keeps no more.
#pragma once

#include <cstdio>
#include <string>

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

class Runs {
 public:
  Runs(int argc, char** argv) {
    if (argc > 1) Mutant::choose(argv[1]);
  }

  // Explores one scenario. After a failure, which Relacy prints with its history, the others are
  // skipped.
  template <class Scenario>
  Runs& explore(const char* name, const How& how) {
    if (failed_) return *this;
    rl::test_params params;
    params.search_type = how.type;
    params.context_bound = how.preemptions;
    params.iteration_count = how.executions;
    params.execution_depth_limit = 1000;
    rl::ostringstream quiet;
    params.progress_stream = &quiet;
    failed_ = !rl::simulate<Scenario>(params);
    total_ += params.stop_iteration;
    std::printf("%s: %s, %s, %llu executions\n\n", failed_ ? "FAILED" : "passed", name,
                how.text.c_str(), static_cast<unsigned long long>(params.stop_iteration));
    return *this;
  }

  // The exit code: 1 if a scenario failed.
  int report() const {
    std::printf("%s: %llu executions explored\n", failed_ ? "FAILED" : "passed",
                static_cast<unsigned long long>(total_));
    return failed_ ? 1 : 0;
  }

 private:
  bool failed_ = false;
  rl::iteration_t total_ = 0;
};

// A member that asks for more alignment than malloc gives, which is where Relacy puts a scenario.
template <class T>
class Placed {
 public:
  Placed() {
    void* at = room_;
    std::size_t space = sizeof room_;
    value_ = new (std::align(alignof(T), sizeof(T), at, space)) T();
  }
  ~Placed() { value_->~T(); }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;
  T& operator*() { return *value_; }
  T* operator->() { return value_; }

 private:
  std::byte room_[sizeof(T) + alignof(T)];
  T* value_;
};

}  // namespace model
