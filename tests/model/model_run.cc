#include "model_run.h"

#include <cstdio>

namespace model {
namespace {

const ScenarioKind* explored;
void* room;  // for the one that runs

// What Relacy knows of a scenario.
template <unsigned threads>
struct Suite : rl::test_suite<Suite<threads>, threads> {
  AnyScenario* scenario = explored->make_at(room);
  ~Suite() { scenario->~AnyScenario(); }
  void before() { scenario->before(); }
  void thread(unsigned index) { scenario->thread(index); }
  void after() { scenario->after(); }
};

bool simulate(rl::test_params& params) {
  switch (explored->threads) {
    case 2:
      return rl::simulate<Suite<2>>(params);
    case 3:
      return rl::simulate<Suite<3>>(params);
    case 4:
      return rl::simulate<Suite<4>>(params);
    case 5:
      return rl::simulate<Suite<5>>(params);
  }
  std::fprintf(stderr, "model_run.cc has no suite of %u threads\n", explored->threads);
  std::abort();
}

// Executions that `how` has too.
How small_part_of(const How& how) {
  constexpr unsigned kFew = 2000;
  return how.type == rl::sched_random ? random(kFew) : bounded(1);
}

}  // namespace

void Runs::explore(const Named& scenario, const How& how) {
  if (failed_) return;
  const ScenarioKind& kind = scenario.kind;
  explored = &kind;
  room = operator new(kind.size, std::align_val_t(kind.alignment));
  rl::test_params params;
  params.search_type = how.type;
  params.context_bound = how.preemptions;
  params.iteration_count = how.executions;
  params.execution_depth_limit = 1000;
  rl::ostringstream quiet;
  params.progress_stream = &quiet;
  failed_ = !simulate(params);
  operator delete(room, std::align_val_t(kind.alignment));
  total_ += params.stop_iteration;
  std::printf("%s: %s, %s, %llu executions\n\n", failed_ ? "FAILED" : "passed", scenario.name,
              how.text.c_str(), static_cast<unsigned long long>(params.stop_iteration));
}

int Runs::report() {
  if (is_mutant_) {
    for (const Named& scenario : scenarios_) explore(scenario, small_part_of(scenario.how));
  }
  for (const Named& scenario : scenarios_) explore(scenario, scenario.how);
  std::printf("%s: %llu executions explored\n", failed_ ? "FAILED" : "passed",
              static_cast<unsigned long long>(total_));
  return failed_ ? 1 : 0;
}

}  // namespace model
