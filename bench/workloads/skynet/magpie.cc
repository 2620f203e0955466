// skynet: a tree of goroutines, ten children each, a million leaves; every node returns the sum of
// its subtree to its parent. Here through join(), until channels land; the peer uses channels.
#include <magpie/magpie.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "measure.h"

namespace {

constexpr int kChildren = 10;

std::int64_t skynet(std::int64_t first_leaf, std::int64_t leaves) {
  if (leaves == 1) return first_leaf;
  std::int64_t share = leaves / kChildren;
  std::array<std::optional<magpie::JoinHandle<std::int64_t>>, kChildren> children;
  for (int i = 0; i < kChildren; ++i)
    children[i].emplace(magpie::spawn(skynet, first_leaf + i * share, share));
  std::int64_t sum = 0;
  for (auto& child : children) sum += child->join();
  return sum;
}

void run_tree(std::int64_t leaves) {
  std::int64_t sum = magpie::spawn(skynet, std::int64_t{0}, leaves).join();
  if (sum != leaves * (leaves - 1) / 2) {
    std::fprintf(stderr, "skynet: wrong sum %lld\n", static_cast<long long>(sum));
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
