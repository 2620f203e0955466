// blocking: 64 goroutines make 200 raw system calls each that sleep 1 ms, beside two that count.
// How long the calls take in all, and how much of their speed alone the counters keep. Through
// blocking(), or raw=1: undeclared. threads=1: each is a thread, and the runtime is not used: what
// the kernel alone makes of it.
// Their speed alone differs by tens of percent within seconds on a virtual machine: it is taken
// before and after. How much CPU time they got, of what two CPUs have, differs less, and is told
// too.
#include <magpie/magpie.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

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

// What runs the counters and the callers.
struct Goroutines {
  magpie::WaitGroup all;
  void go(auto f) { all.go(f); }
  void wait() { all.wait(); }
  static void sleep_for(std::chrono::milliseconds time) { magpie::sleep_for(time); }
};

struct Threads {
  std::vector<std::jthread> all;
  void go(auto f) { all.emplace_back(f); }
  void wait() { all.clear(); }
  static void sleep_for(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }
};

template <class Runners>
double speed_alone() {
  long before = counted();
  double took = bench::time_ns([] { Runners::sleep_for(std::chrono::milliseconds(200)); });
  return static_cast<double>(counted() - before) / took;
}

template <class Runners>
void measure(const bench::Args& args, void (*call)()) {
  long callers = args.number("goroutines", 64);
  long calls = args.number("calls", 200);
  Runners counting;
  for (Counter& counter : counters) counting.go([&counter] { counter.run(); });
  Runners::sleep_for(std::chrono::milliseconds(100));

  double alone = speed_alone<Runners>();
  for (Counter& counter : counters) counter.longest_stop_ns = 0;
  long before = counted();
  double cpu_before = cpu_ns();
  double took = bench::time_ns([&] {
    Runners calling;
    for (long i = 0; i < callers; ++i) {
      calling.go([=] {
        for (long k = 0; k < calls; ++k) call();
      });
    }
    calling.wait();
  });
  double cpu = cpu_ns() - cpu_before;
  double beside = static_cast<double>(counted() - before) / took;
  auto longest_stop_ns = static_cast<double>(
      std::max(counters[0].longest_stop_ns.load(), counters[1].longest_stop_ns.load()));
  alone = (alone + speed_alone<Runners>()) / 2;
  stop = true;
  counting.wait();
  bench::report("ms", took / 1e6);
  bench::report("counters_percent", 100 * beside / alone);
  bench::report("counters_cpu_percent", 100 * cpu / took / 2);
  bench::report("longest_stop_ms", longest_stop_ns / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  if (args.number("threads", 0) != 0) {
    measure<Threads>(args, sleep_in_kernel);
    return 0;
  }
  bool declared = args.number("raw", 0) == 0;
  magpie::run(magpie::Options{.procs = static_cast<int>(args.number("procs", 2))}, [&] {
    measure<Goroutines>(args,
                        declared ? [] { magpie::blocking(sleep_in_kernel); } : sleep_in_kernel);
  });
}
