// chan_pingpong: two fibers pass a number to and fro over two unbuffered channels. The result is
// wall time per round.
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/unbuffered_channel.hpp>
#include <cstdlib>

#include "fiber_procs.h"
#include "measure.h"

namespace {

void play(long rounds) {
  boost::fibers::unbuffered_channel<long> there, back;
  boost::fibers::fiber partner([&there, &back] {
    for (long value : there) back.push(value + 1);
    back.close();
  });
  long value = 0;
  for (long i = 0; i < rounds; ++i) {
    there.push(value);
    value = back.value_pop();
  }
  there.close();
  partner.join();
  if (value != rounds) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  long rounds = args.number("rounds", 2'000'000);
  bench::with_fiber_procs(args, [&] {
    double first = bench::time_ns([&] { play(rounds); });
    double warm = bench::time_ns([&] { play(rounds); });
    bench::report("first_ns_per_op", first / static_cast<double>(rounds));
    bench::report("ns_per_op", warm / static_cast<double>(rounds));
  });
}
