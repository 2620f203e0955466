// parallel_reduce: the sum of an array of doubles, in the order of the array.
#include <magpie/magpie.h>

#include <functional>

#include "measure.h"
#include "sum.h"

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  magpie::run(magpie::Options{.procs = procs}, [&] {
    bench::measure_sum(args, [](const std::vector<double>& values) {
      return magpie::parallel_reduce(values, 0.0, std::identity{}, std::plus<>{});
    });
  });
}
