// blocking: 64 goroutines make 200 raw system calls each that sleep 1 ms, beside two that count. How long the calls take
// in all, and how much of their speed alone the counters keep. Through blocking(), or raw=1: undeclared.
// Their speed alone differs by ten percent from run to run on a virtual machine. How much CPU time they got, of what two CPUs
// have, differs less, and is told too.
#include <magpie/magpie.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>

#include "measure.h"

namespace {

std::atomic<bool> stop{false};

struct alignas(64) Counter {
  std::atomic<long> count{0};
  std::atomic<long> longest_stop_ns{0};
  std::atomic<clockid_t> clock{};  // of its thread, on which it stays: it calls nothing

  void run() {
    clockid_t mine;
    pthread_getcpuclockid(pthread_self(), &mine);
    clock = mine;
    auto last = static_cast<double>(bench::now_ns());
    for (long turn = 1; !stop.load(std::memory_order_relaxed); ++turn) {
      count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      if (turn % 1024 != 0) continue;
      auto now = static_cast<double>(bench::now_ns());
      if (now - last > static_cast<double>(longest_stop_ns.load(std::memory_order_relaxed)))
        longest_stop_ns.store(static_cast<long>(now - last), std::memory_order_relaxed);
      last = now;
    }
  }
};

Counter counters[2];

double cpu_ns() {
  double sum = 0;
  for (Counter& counter : counters) {
    timespec used;
    clock_gettime(counter.clock, &used);
    sum += static_cast<double>(used.tv_sec) * 1e9 + static_cast<double>(used.tv_nsec);
  }
  return sum;
}

long counted() { return counters[0].count + counters[1].count; }

void sleep_in_kernel() {
  timespec time{.tv_sec = 0, .tv_nsec = 1'000'000};
  syscall(SYS_nanosleep, &time, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 2));
  bool declared = args.number("raw", 0) == 0;
  long goroutines = args.number("goroutines", 64);
  long calls = args.number("calls", 200);
  magpie::run(magpie::Options{.procs = procs}, [&] {
    magpie::WaitGroup all;
    for (Counter& counter : counters) all.go([&counter] { counter.run(); });
    magpie::sleep_for(std::chrono::milliseconds(100));

    long before = counted();
    auto begin = static_cast<double>(bench::now_ns());
    magpie::sleep_for(std::chrono::milliseconds(300));
    double alone =
        static_cast<double>(counted() - before) / (static_cast<double>(bench::now_ns()) - begin);

    for (Counter& counter : counters) counter.longest_stop_ns = 0;
    before = counted();
    double cpu_before = cpu_ns();
    begin = static_cast<double>(bench::now_ns());
    magpie::WaitGroup callers;
    for (long i = 0; i < goroutines; ++i) {
      callers.go([&] {
        for (long k = 0; k < calls; ++k) {
          if (declared) {
            magpie::blocking(sleep_in_kernel);
          } else {
            sleep_in_kernel();
          }
        }
      });
    }
    callers.wait();
    double took = static_cast<double>(bench::now_ns()) - begin;
    double cpu = cpu_ns() - cpu_before;
    double beside = static_cast<double>(counted() - before) / took;
    stop = true;
    all.wait();
    bench::report("ms", took / 1e6);
    bench::report("counters_percent", 100 * beside / alone);
    bench::report("counters_cpu_percent", 100 * cpu / took / procs);
    bench::report("longest_stop_ms",
                  static_cast<double>(std::max(counters[0].longest_stop_ns.load(),
                                               counters[1].longest_stop_ns.load())) /
                      1e6);
  });
}
