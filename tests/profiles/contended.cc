// For pprof: goroutines wait for a lock, and for a channel. Writes profiles to the files that it is
// given: all waits, and waits for locks.
#include <magpie/magpie.h>

#include <chrono>
#include <fstream>
#include <iostream>

namespace {
magpie::Mutex gate;
magpie::Chan<int> values;
}  // namespace

extern "C" {
[[gnu::noinline]] void wait_at_gate() {
  gate.lock();
  gate.unlock();
}
[[gnu::noinline]] int wait_for_value() { return *values.recv() + 1; }
}

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  if (argc != 3) return 2;
  magpie::profile::start({.period = 1ns});
  magpie::run(magpie::Options{.procs = 2}, [] {
    magpie::WaitGroup group;
    gate.lock();
    for (int i = 0; i < 8; ++i) group.go(wait_at_gate);
    group.go([] { (void)wait_for_value(); });
    while (magpie::stats().waiting < 9) magpie::yield();
    magpie::sleep_for(10ms);
    gate.unlock();
    values.send(1);
    group.wait();
  });
  magpie::profile::stop();
  std::ofstream(argv[1], std::ios::binary) << magpie::profile::pprof();
  std::ofstream(argv[2], std::ios::binary) << magpie::profile::pprof(magpie::profile::Waits::locks);
}
