// chan_select: eight producers fill a buffered channel each, one goroutine selects over the eight.
// The result is wall time per value.
#include <magpie/magpie.h>

#include "measure.h"

namespace {

void stream(long each) {
  magpie::Chan<long> c[8] = {magpie::Chan<long>(128), magpie::Chan<long>(128),
                             magpie::Chan<long>(128), magpie::Chan<long>(128),
                             magpie::Chan<long>(128), magpie::Chan<long>(128),
                             magpie::Chan<long>(128), magpie::Chan<long>(128)};
  for (auto& channel : c) {
    magpie::go([channel, each] {
      for (long i = 0; i < each; ++i) channel.send(i);
    });
  }
  long sum = 0;
  auto add = [&sum](std::optional<long> value) { sum += *value; };
  using magpie::on_recv;
  for (long i = 0; i < 8 * each; ++i) {
    magpie::select(on_recv(c[0], add), on_recv(c[1], add), on_recv(c[2], add), on_recv(c[3], add),
                   on_recv(c[4], add), on_recv(c[5], add), on_recv(c[6], add), on_recv(c[7], add));
  }
  if (sum != 8 * (each * (each - 1) / 2)) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long each = args.number("values", 250'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    double values = 8 * static_cast<double>(each);
    double first = bench::time_ns([&] { stream(each); });
    double warm = bench::time_ns([&] { stream(each); });
    bench::report("first_ns_per_op", first / values);
    bench::report("ns_per_op", warm / values);
  });
}
