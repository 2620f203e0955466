// chan_many: eight producers and eight consumers share a channel with a buffer of 128. The result
// is wall time per value.
#include <magpie/magpie.h>

#include <atomic>

#include "measure.h"

namespace {

void stream(long producers, long consumers, long each) {
  magpie::Chan<long> channel(128);
  magpie::WaitGroup producing, consuming;
  std::atomic<long> sum{0};
  for (long c = 0; c < consumers; ++c) {
    consuming.go([&] {
      long mine = 0;
      for (long value : channel) mine += value;
      sum += mine;
    });
  }
  for (long p = 0; p < producers; ++p) {
    producing.go([&channel, each] {
      for (long i = 0; i < each; ++i) channel.send(i);
    });
  }
  producing.wait();
  channel.close();
  consuming.wait();
  if (sum != producers * (each * (each - 1) / 2)) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long producers = args.number("producers", 8);
  long consumers = args.number("consumers", 8);
  long each = args.number("values", 500'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    double values = static_cast<double>(producers * each);
    double first = bench::time_ns([&] { stream(producers, consumers, each); });
    double warm = bench::time_ns([&] { stream(producers, consumers, each); });
    bench::report("first_ns_per_op", first / values);
    bench::report("ns_per_op", warm / values);
  });
}
