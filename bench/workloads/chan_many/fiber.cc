// chan_many: eight producers and eight consumers share a channel with a buffer of 128. The result
// is wall time per value.
#include <atomic>
#include <boost/fiber/buffered_channel.hpp>
#include <boost/fiber/fiber.hpp>
#include <cstdlib>

#include "fiber_procs.h"
#include "measure.h"

namespace {

void stream(long producers, long consumers, long each) {
  boost::fibers::buffered_channel<long> channel(128);
  std::vector<boost::fibers::fiber> producing, consuming;
  std::atomic<long> sum{0};
  for (long c = 0; c < consumers; ++c) {
    consuming.emplace_back([&channel, &sum] {
      long mine = 0;
      for (long value : channel) mine += value;
      sum += mine;
    });
  }
  for (long p = 0; p < producers; ++p) {
    producing.emplace_back([&channel, each] {
      for (long i = 0; i < each; ++i) channel.push(i);
    });
  }
  for (auto& fiber : producing) fiber.join();
  channel.close();
  for (auto& fiber : consuming) fiber.join();
  if (sum != producers * (each * (each - 1) / 2)) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  long producers = args.number("producers", 8);
  long consumers = args.number("consumers", 8);
  long each = args.number("values", 500'000);
  bench::with_fiber_procs(args, [&] {
    double values = static_cast<double>(producers * each);
    double first = bench::time_ns([&] { stream(producers, consumers, each); });
    double warm = bench::time_ns([&] { stream(producers, consumers, each); });
    bench::report("first_ns_per_op", first / values);
    bench::report("ns_per_op", warm / values);
  });
}
