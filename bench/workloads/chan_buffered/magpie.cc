// chan_buffered: one producer, one consumer, a buffer of 128. The result is wall time per value.
#include <magpie/magpie.h>

#include "measure.h"

namespace {

void stream(long values, long capacity) {
  magpie::Chan<long> channel(static_cast<std::size_t>(capacity));
  magpie::go([channel, values] {
    for (long i = 0; i < values; ++i) channel.send(i);
    channel.close();
  });
  long sum = 0;
  for (long value : channel) sum += value;
  if (sum != values * (values - 1) / 2) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long values = args.number("values", 10'000'000);
  long capacity = args.number("capacity", 128);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    double first = bench::time_ns([&] { stream(values, capacity); });
    double warm = bench::time_ns([&] { stream(values, capacity); });
    bench::report("first_ns_per_op", first / static_cast<double>(values));
    bench::report("ns_per_op", warm / static_cast<double>(values));
  });
}
