// parallel_for: a trivial body over arrays. Nobody says how to cut the loop into pieces.
#include <magpie/magpie.h>

#include "measure.h"
#include "saxpy.h"

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  magpie::run(magpie::Options{.procs = procs}, [&] {
    bench::measure_saxpy(args, [](std::size_t count, const float* x, float* y) {
      magpie::parallel_for(std::size_t{0}, count,
                           [x, y](std::size_t i) { y[i] = 0.5f * x[i] + y[i]; });
    });
  });
}
