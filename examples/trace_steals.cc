// trace_steals.cc: records a trace of a lopsided load, to look for steals in it.
//
// One P starts all the work, the others steal it. Then:
//   magpie trace view steals.trace       in a browser: arrows from P to P are steals
//   magpie trace summary steals.trace    how many, and how long goroutines waited
// The counters of stats() say how many steals the trace has to show.
#include <magpie/magpie.h>
#include <magpie/trace.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "steals.trace";
  const std::uint64_t steals = magpie::run(magpie::Options{.procs = 4}, [&] {
    magpie::trace::start(path);
    // Until another P has come: on a busy machine that may take some rounds.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    std::uint64_t seen = 0;
    while (seen == 0 && std::chrono::steady_clock::now() < limit) {
      magpie::trace::Region round("lopsided");
      magpie::WaitGroup all;
      for (int i = 0; i < 200; ++i) {
        all.go([] {
          const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
          while (std::chrono::steady_clock::now() < until) {
          }
        });
      }
      all.wait();
      seen = magpie::stats().total.steals_succeeded;
    }
    magpie::trace::stop();
    return seen;
  });
  std::printf("%llu steals; the trace has %llu bytes: %s\n",
              static_cast<unsigned long long>(steals),
              static_cast<unsigned long long>(std::filesystem::file_size(path)), path.c_str());
  return steals > 0 && std::filesystem::file_size(path) > 0 ? 0 : 1;
}
