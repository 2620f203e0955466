// skynet_channels: a tree of goroutines, ten children each, a million leaves; every node returns
// the sum of its subtree to its parent, through a channel. The same program as the peer's, line by
// line.
#include <magpie/magpie.h>

#include <cstdint>
#include <cstdlib>

#include "measure.h"

namespace {

constexpr int kChildren = 10;

void skynet(const magpie::Chan<std::int64_t>& result, std::int64_t first_leaf,
            std::int64_t leaves) {
  if (leaves == 1) {
    result.send(first_leaf);
    return;
  }
  std::int64_t share = leaves / kChildren;
  magpie::Chan<std::int64_t> results;
  for (int i = 0; i < kChildren; ++i) magpie::go(skynet, results, first_leaf + i * share, share);
  std::int64_t sum = 0;
  for (int i = 0; i < kChildren; ++i) sum += *results.recv();
  result.send(sum);
}

void run_tree(std::int64_t leaves) {
  magpie::Chan<std::int64_t> result;
  magpie::go(skynet, result, std::int64_t{0}, leaves);
  std::int64_t sum = *result.recv();
  if (sum != leaves * (leaves - 1) / 2) {
    std::fprintf(stderr, "skynet_channels: wrong sum %lld\n", static_cast<long long>(sum));
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  std::int64_t leaves = args.number("leaves", 1'000'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    double first = bench::time_ns([&] { run_tree(leaves); });
    double warm = bench::time_ns([&] { run_tree(leaves); });
    bench::report("first_ms", first / 1e6);
    bench::report("ms", warm / 1e6);
  });
}
