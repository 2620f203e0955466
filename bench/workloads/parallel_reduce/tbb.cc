// parallel_reduce: the sum of an array of doubles, in the order of the array.
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <functional>
#include <numeric>

#include "measure.h"
#include "sum.h"
#include "tbb_procs.h"

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  bench::with_tbb_procs(args, [&] {
    bench::measure_sum(args, [](const std::vector<double>& values) {
      using Range = tbb::blocked_range<const double*>;
      return tbb::parallel_reduce(
          Range(values.data(), values.data() + values.size()), 0.0,
          [](const Range& r, double sum) { return std::accumulate(r.begin(), r.end(), sum); },
          std::plus<>{});
    });
  });
}
