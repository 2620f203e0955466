// blocking_call: what blocking() costs when nobody needs the P meanwhile, beyond the call itself.
#include <magpie/magpie.h>

#include "measure.h"

namespace {

[[gnu::noinline]] void nothing() { asm volatile(""); }

template <class Call>
double ns_per_call(long rounds, Call call) {
  auto begin = static_cast<double>(bench::now_ns());
  for (long i = 0; i < rounds; ++i) call();
  return (static_cast<double>(bench::now_ns()) - begin) / static_cast<double>(rounds);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long rounds = args.number("rounds", 100'000'000);
  magpie::run(magpie::Options{.procs = procs}, [&] {
    double bare = ns_per_call(rounds, [] { nothing(); });
    double declared = ns_per_call(rounds, [] { magpie::blocking(nothing); });
    bench::report("ns_per_op", declared - bare);
  });
}
