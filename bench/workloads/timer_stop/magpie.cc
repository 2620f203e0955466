// timer_stop: makes a timer of an hour and stops it, again and again, as every request with a
// time-out does; once alone, once beside 100,000 timers that stay. The second of two rounds counts.
#include <magpie/magpie.h>

#include <vector>

#include "measure.h"

namespace {

double ns_per_timer(long timers) {
  return bench::time_ns([timers] {
           for (long i = 0; i < timers; ++i) {
             magpie::Timer timer(std::chrono::hours(1));
             timer.stop();
           }
         }) /
         static_cast<double>(timers);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long timers = args.number("timers", 1'000'000);
  magpie::run(magpie::Options{.procs = procs}, [&] {
    double first = ns_per_timer(timers);
    bench::report("ns_per_op", ns_per_timer(timers));
    bench::report("first_ns_per_op", first);
    std::vector<magpie::Timer> others;
    for (int i = 0; i < 100'000; ++i) others.emplace_back(std::chrono::seconds(600 + i % 6000));
    bench::report("ns_per_op_beside_others", ns_per_timer(timers));
  });
}
