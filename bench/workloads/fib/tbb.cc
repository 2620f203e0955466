// fib: a task for every call, down to the leaves: run fib(n - 1) in a task_group, call fib(n - 2),
// wait.
#include <tbb/task_group.h>

#include "fib.h"
#include "measure.h"
#include "tbb_procs.h"

namespace {

long fib(long n) {
  if (n < 2) return n;
  long first;
  tbb::task_group group;
  group.run([n, &first] { first = fib(n - 1); });
  long second = fib(n - 2);
  group.wait();
  return first + second;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  bench::with_tbb_procs(args, [&] { bench::measure_fib(args, fib); });
}
