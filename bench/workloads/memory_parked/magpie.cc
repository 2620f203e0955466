// memory_parked: what a goroutine costs that ran and now waits. A million of them wait at a gate.
// No warm-up: memory that is reused would not show. The number of mappings is reported because
// guard pages that split mappings would exhaust vm.max_map_count long before memory runs out.
#include <magpie/magpie.h>

#include "measure.h"

namespace {

long count_mappings() {
  std::ifstream maps("/proc/self/maps");
  long lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long goroutines = args.number("goroutines", 1'000'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    magpie::WaitGroup arrived, gate, all;
    arrived.add(static_cast<int>(goroutines));
    all.add(static_cast<int>(goroutines));
    gate.add(1);

    long resident_before = bench::resident_bytes();
    long tables_before = bench::status_bytes("VmPTE");
    for (long i = 0; i < goroutines; ++i) {
      magpie::go([&] {
        arrived.done();
        gate.wait();
        all.done();
      });
    }
    arrived.wait();
    long resident = bench::resident_bytes() - resident_before;
    long tables = bench::status_bytes("VmPTE") - tables_before;
    long mappings = count_mappings();
    gate.done();
    all.wait();

    double count = static_cast<double>(goroutines);
    bench::report("bytes_each", static_cast<double>(resident) / count);
    bench::report("bytes_each_with_page_tables", static_cast<double>(resident + tables) / count);
    bench::report("mappings", static_cast<double>(mappings));
  });
}
