// sleepers.cc: a hundred thousand goroutines sleep at the same time.
//
// Look at the threads and the memory: a sleeper keeps no thread, and of its stack of 256 KiB only
// the pages that it has touched.
#include <magpie/magpie.h>
#include <unistd.h>

#include <cstdio>

namespace {

// Of this process, in memory.
long resident_kib() {
  long total = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace

int main() {
  constexpr int kSleepers = 100'000;
  return magpie::run([] {
    const long before = resident_kib();
    magpie::Context night = magpie::Context::background().with_cancel();
    magpie::WaitGroup all;
    for (int i = 0; i < kSleepers; ++i) {
      all.go([&night] {
        std::error_code woken;
        magpie::sleep_for(std::chrono::hours(1), night, woken);
      });
    }
    while (magpie::stats().waiting < kSleepers) magpie::sleep_for(std::chrono::milliseconds(10));
    const double kib_each = static_cast<double>(resident_kib() - before) / kSleepers;
    const int threads = magpie::num_threads();
    std::printf("%d sleep: %.1f KiB each, %d threads\n", kSleepers, kib_each, threads);
    night.cancel();
    all.wait();
    return kib_each < 32 && threads < 100 ? 0 : 1;
  });
}
