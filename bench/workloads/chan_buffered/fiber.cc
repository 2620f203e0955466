// chan_buffered: one producer, one consumer, a buffer of 128. The result is wall time per value.
#include <boost/fiber/buffered_channel.hpp>
#include <boost/fiber/fiber.hpp>
#include <cstdlib>

#include "fiber_procs.h"
#include "measure.h"

namespace {

void stream(long values, long capacity) {
  boost::fibers::buffered_channel<long> channel(static_cast<std::size_t>(capacity));
  boost::fibers::fiber producer([&channel, values] {
    for (long i = 0; i < values; ++i) channel.push(i);
    channel.close();
  });
  long sum = 0;
  for (long value : channel) sum += value;
  producer.join();
  if (sum != values * (values - 1) / 2) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  long values = args.number("values", 10'000'000);
  long capacity = args.number("capacity", 128);
  bench::with_fiber_procs(args, [&] {
    double first = bench::time_ns([&] { stream(values, capacity); });
    double warm = bench::time_ns([&] { stream(values, capacity); });
    bench::report("first_ns_per_op", first / static_cast<double>(values));
    bench::report("ns_per_op", warm / static_cast<double>(values));
  });
}
