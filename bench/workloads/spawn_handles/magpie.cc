// spawn_handles: as spawn_join, but each goroutine has a handle of its own and is joined through
// it. Go has no such handle; the peer is Go's spawn_join.
#include <magpie/magpie.h>

#include <vector>

#include "measure.h"

namespace {

void spawn_and_join(std::vector<magpie::JoinHandle<void>>& handles, long goroutines) {
  for (long i = 0; i < goroutines; ++i) handles.push_back(magpie::spawn([] {}));
  for (auto& handle : handles) handle.join();
  handles.clear();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long goroutines = args.number("goroutines", 1'000'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    std::vector<magpie::JoinHandle<void>> handles;
    handles.reserve(static_cast<std::size_t>(goroutines));
    double first = bench::time_ns([&] { spawn_and_join(handles, goroutines); });
    double warm = bench::time_ns([&] { spawn_and_join(handles, goroutines); });
    bench::report("first_ns_per_op", first / static_cast<double>(goroutines));
    bench::report("ns_per_op", warm / static_cast<double>(goroutines));
  });
}
