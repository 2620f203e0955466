// micro: the cost of single operations, on one proc unless told otherwise. Each is measured in
// several batches; the fastest batch is reported, as the one least disturbed.
#include <magpie/magpie.h>

#include <algorithm>
#include <limits>

#include "measure.h"

namespace {

template <class F>
double best_ns_per_op(long operations, F batch) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < 7; ++i) best = std::min(best, bench::time_ns(batch));
  return best / static_cast<double>(operations);
}

void yield_alone(long operations) {
  for (long i = 0; i < operations; ++i) magpie::yield();
}

// Two goroutines take turns: each yield is one switch between two stacks.
void yield_in_turns(long operations) {
  auto partner = magpie::spawn([=] { yield_alone(operations / 2); });
  yield_alone(operations / 2);
  partner.join();
}

// Only the start: what it costs the caller. The goroutines run after the clock has stopped.
double go_only_ns(long batches, long goroutines) {
  double best = std::numeric_limits<double>::max();
  for (long i = 0; i < batches; ++i) {
    magpie::WaitGroup all;
    all.add(static_cast<int>(goroutines));
    best = std::min(best, bench::time_ns([&] {
                      for (long n = 0; n < goroutines; ++n) magpie::go([&all] { all.done(); });
                    }));
    all.wait();
  }
  return best / static_cast<double>(goroutines);
}

void go_and_wait(long operations) {
  for (long i = 0; i < operations; ++i) {
    magpie::WaitGroup one;
    one.add(1);
    magpie::go([&one] { one.done(); });
    one.wait();
  }
}

void spawn_and_join(long operations) {
  for (long i = 0; i < operations; ++i) magpie::spawn([] {}).join();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long operations = args.number("operations", 1'000'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    bench::report("yield_alone_ns", best_ns_per_op(operations, [&] { yield_alone(operations); }));
    bench::report("yield_in_turns_ns",
                  best_ns_per_op(operations, [&] { yield_in_turns(operations); }));
    bench::report("go_only_ns", go_only_ns(1'000, 200));  // 200 fit the ring: no spill
    bench::report("go_and_wait_ns", best_ns_per_op(operations, [&] { go_and_wait(operations); }));
    bench::report("spawn_and_join_ns",
                  best_ns_per_op(operations, [&] { spawn_and_join(operations); }));
  });
}
