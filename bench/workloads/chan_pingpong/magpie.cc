// chan_pingpong: two goroutines pass a number to and fro over two unbuffered channels. The result
// is wall time per round.
#include <magpie/magpie.h>

#include "measure.h"

namespace {

void play(long rounds) {
  magpie::Chan<long> there, back;
  magpie::go([there, back] {
    for (long value : there) back.send(value + 1);
    back.close();
  });
  long value = 0;
  for (long i = 0; i < rounds; ++i) {
    there.send(value);
    value = *back.recv();
  }
  there.close();
  if (back.recv() || value != rounds) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long rounds = args.number("rounds", 2'000'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    double first = bench::time_ns([&] { play(rounds); });
    double warm = bench::time_ns([&] { play(rounds); });
    bench::report("first_ns_per_op", first / static_cast<double>(rounds));
    bench::report("ns_per_op", warm / static_cast<double>(rounds));
  });
}
