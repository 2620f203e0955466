// samples.cc: writes the trace files that tests/command/run and the guide look at, into the folder
// given as the argument. Each is made by hand, so that what the commands say is known.

#include <cstdio>
#include <fstream>
#include <string>

#include "trace/file_builder.h"

namespace magpie::trace {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kRing = 1, kStolen = 7, kMutex = 10, kReceive = 5;

// Two Ps share the work of 100 goroutines, and one P steals.
std::string healthy() {
  FileBuilder file({.procs = 2, .program = "healthy"});
  file.put(0, 0, Kind::proc_begin, {1});
  file.put(1, 0, Kind::proc_begin, {2});
  std::int64_t now = 1000;
  for (std::uint64_t g = 1; g <= 100; g += 2) {
    file.put(0, now, Kind::create, {g, 0x1000, kRing, 0});
    file.put(0, now + 100, Kind::create, {g + 1, 0x1000, kRing, 0});
    file.put(0, now + 200, Kind::run, {g, kRing});
    file.put(1, now + 300, Kind::steal, {0, 1, 0});
    file.put(1, now + 400, Kind::run, {g + 1, kStolen});
    now += 50'000;
    file.put(0, now, Kind::end);
    file.put(1, now, Kind::end);
    now += 1000;
  }
  return file.finish();
}

// Two hundred goroutines wait at a channel that nobody closes.
std::string stuck() {
  FileBuilder file({.procs = 2, .program = "stuck"});
  file.put(0, 0, Kind::proc_begin, {1});
  std::int64_t now = 1000;
  for (std::uint64_t g = 1; g <= 200; ++g) {
    file.put(0, now += 1000, Kind::create, {g, 0x2000, kRing, 0});
    file.put(0, now += 1000, Kind::run, {g, kRing});
    file.put(0, now += 1000, Kind::park, {kReceive, 0xc0ffee});
  }
  file.put(0, now + 1000, Kind::proc_end);
  return file.finish(100 * kMs);
}

// A goroutine blocks its P without blocking(), again and again, and others wait for a Mutex.
std::string slow() {
  FileBuilder file({.procs = 1, .program = "slow"});
  file.put(0, 0, Kind::proc_begin, {1});
  file.put(0, 10, Kind::create, {1, 0x3000, kRing, 0});
  file.put(0, 20, Kind::create, {2, 0x3100, kRing, 0});
  file.put(0, 30, Kind::run, {2, kRing});
  file.put(0, 40, Kind::park, {kMutex, 0xabc});
  std::int64_t now = 50;
  for (int i = 0; i < 5; ++i) {
    file.put(0, now, Kind::run, {1, kRing});
    file.put(kOutside, now + kMs, Kind::taken, {0, 1, 1});
    file.put(0, now + kMs + 1000, Kind::proc_begin, {2});
    file.put(0, now + 9 * kMs, Kind::back, {1});
    now += 10 * kMs;
    file.put(0, now, Kind::yield, {kRing});
  }
  file.put(0, now + 10, Kind::run, {1, kRing});
  file.put(0, now + 20, Kind::ready, {2, kRing, 0});
  file.put(0, now + 30, Kind::end);
  file.put(0, now + 40, Kind::run, {2, kRing});
  file.put(0, now + 50, Kind::end);
  return file.finish();
}

// A scheduler with a fault: goroutine 2 waits in the ring of P 0 for 20 ms, P 1 idles and no thread
// is woken.
std::string lost_wake_up() {
  FileBuilder file({.procs = 2, .program = "unbalanced"});
  file.put(0, 0, Kind::proc_begin, {1});
  file.put(0, 10, Kind::create, {1, 0x4000, kRing, 0});
  file.put(0, 20, Kind::run, {1, kRing});
  file.put(0, kMs, Kind::create, {2, 0x4100, kRing, 0});
  file.put(0, 21 * kMs, Kind::end);
  file.put(0, 21 * kMs + 10, Kind::run, {2, kRing});
  file.put(0, 22 * kMs, Kind::end);
  return file.finish();
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.flush()) std::perror(path.c_str());
}

}  // namespace
}  // namespace magpie::trace

int main(int argc, char** argv) {
  using namespace magpie::trace;
  const std::string folder = argc > 1 ? argv[1] : ".";
  write(folder + "/healthy.trace", healthy());
  write(folder + "/stuck.trace", stuck());
  write(folder + "/slow.trace", slow());
  write(folder + "/unbalanced.trace", lost_wake_up());
}
