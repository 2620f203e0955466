// parallel_for: a trivial body over arrays. Nobody says how to cut the loop into pieces.
#include <tbb/parallel_for.h>

#include "measure.h"
#include "saxpy.h"
#include "tbb_procs.h"

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  bench::with_tbb_procs(args, [&] {
    bench::measure_saxpy(args, [](std::size_t count, const float* x, float* y) {
      tbb::parallel_for(std::size_t{0}, count,
                        [x, y](std::size_t i) { y[i] = 0.5f * x[i] + y[i]; });
    });
  });
}
