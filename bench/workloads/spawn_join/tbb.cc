// spawn_join: main starts a million empty tasks in a task_group, then waits for all of them.
#include <tbb/task_group.h>

#include "measure.h"
#include "tbb_procs.h"

namespace {

void spawn_and_join(long tasks) {
  tbb::task_group all;
  for (long i = 0; i < tasks; ++i) all.run([] {});
  all.wait();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  long tasks = args.number("goroutines", 1'000'000);
  bench::with_tbb_procs(args, [&] {
    double first = bench::time_ns([&] { spawn_and_join(tasks); });
    double warm = bench::time_ns([&] { spawn_and_join(tasks); });
    bench::report("first_ns_per_op", first / static_cast<double>(tasks));
    bench::report("ns_per_op", warm / static_cast<double>(tasks));
  });
}
