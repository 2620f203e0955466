// knobs: what each setting of Options and MAGPIE_DEBUG costs, and what it buys; the figures of
// docs/guide/tuning.md. Prints a line for each setting, with the median and the least of `rounds`
// runs. `knob=NAME` measures one of them only.
#include <magpie/magpie.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "measure.h"

namespace {

using namespace std::chrono_literals;

struct Figure {
  const char* name;
  double value;
};
using Figures = std::vector<Figure>;
using Work = Figures (*)();

// The runtime's own cost: goroutines that do nothing but change places.
Figures switching() {
  constexpr int kGoroutines = 100, kYields = 20'000;
  const double ns = bench::time_ns([] {
    magpie::WaitGroup all;
    for (int i = 0; i < kGoroutines; ++i) {
      all.go([] {
        for (int n = 0; n < kYields; ++n) magpie::yield();
      });
    }
    all.wait();
  });
  return {{"yield_ns", ns / (double{kGoroutines} * kYields)}};
}

// How late a goroutine runs that sleeps for 1 ms, beside two loops for each P that never call the
// runtime for 20 ms at a time.
Figures beside_loops() {
  std::atomic<bool> over{false};
  magpie::WaitGroup loops;
  for (int i = 0; i < 2 * magpie::procs(); ++i) {
    loops.go([&over] {
      while (!over.load(std::memory_order_relaxed)) {
        const std::int64_t end = bench::now_ns() + 20'000'000;
        while (bench::now_ns() < end && !over.load(std::memory_order_relaxed)) {
        }
        magpie::yield();
      }
    });
  }
  std::vector<double> late_ms;
  for (const std::int64_t end = bench::now_ns() + 1'000'000'000; bench::now_ns() < end;) {
    const std::int64_t due = bench::now_ns() + 1'000'000;
    magpie::sleep_for(1ms);
    late_ms.push_back(static_cast<double>(bench::now_ns() - due) / 1e6);
  }
  over = true;
  const auto preemptions = static_cast<double>(magpie::stats().total.preemptions);
  loops.wait();
  std::sort(late_ms.begin(), late_ms.end());
  return {{"median_late_ms", late_ms[late_ms.size() / 2]},
          {"p99_late_ms", late_ms[late_ms.size() * 99 / 100]},
          {"preemptions", preemptions}};
}

// How long loops stand still that share each P with another loop, and never call the runtime.
Figures sharing_loops() {
  std::vector<double> stops_ms(static_cast<std::size_t>(2 * magpie::procs()));
  magpie::WaitGroup loops;
  const std::int64_t end = bench::now_ns() + 1'000'000'000;
  for (double& longest_ms : stops_ms) {
    loops.go([&longest_ms, end] {
      std::int64_t last = bench::now_ns();
      while (last < end) {
        const std::int64_t now = bench::now_ns();
        longest_ms = std::max(longest_ms, static_cast<double>(now - last) / 1e6);
        last = now;
      }
    });
  }
  loops.wait();
  const auto preemptions = static_cast<double>(magpie::stats().total.preemptions);
  std::sort(stops_ms.begin(), stops_ms.end());
  return {{"longest_stop_ms", stops_ms.back()}, {"preemptions", preemptions}};
}

// 128 goroutines in calls that block for 1 ms.
Figures blocked() {
  const double ns = bench::time_ns([] {
    magpie::WaitGroup all;
    for (int i = 0; i < 128; ++i) {
      all.go([] {
        for (int n = 0; n < 20; ++n) magpie::blocking([] { std::this_thread::sleep_for(1ms); });
      });
    }
    all.wait();
  });
  return {{"ms", ns / 1e6}, {"threads", static_cast<double>(magpie::num_threads())}};
}

// Memory of goroutines that have run and wait.
Figures parked() {
  constexpr int kGoroutines = 20'000;
  const long resident = bench::resident_bytes(), all_before = bench::status_bytes("VmSize");
  magpie::Chan<void> gate;
  magpie::WaitGroup all;
  for (int i = 0; i < kGoroutines; ++i) all.go([gate] { gate.recv(); });
  while (magpie::stats().waiting < kGoroutines) magpie::yield();
  const auto each = [](long bytes) { return static_cast<double>(bytes) / kGoroutines; };
  const Figures figures = {
      {"resident_bytes_each", each(bench::resident_bytes() - resident)},
      {"address_kib_each", each(bench::status_bytes("VmSize") - all_before) / 1024}};
  gate.close();
  all.wait();
  return figures;
}

void compute_a_little() {
  for (int i = 0; i < 500; ++i) asm volatile("" ::: "memory");
}

// Goroutines that start others, two for each P: which steals are far?
Figures starting() {
  constexpr std::uint64_t kSteals = 3'000;
  std::atomic<bool> over{false};
  magpie::WaitGroup all;
  for (int i = 0; i < 2 * magpie::procs(); ++i) {
    all.go([&over] {
      while (!over.load(std::memory_order_relaxed)) {
        magpie::WaitGroup few;
        for (int child = 0; child < 8; ++child) few.go([] { compute_a_little(); });
        few.wait();
      }
    });
  }
  while (magpie::stats().total.steals_succeeded < kSteals) magpie::sleep_for(1ms);
  over = true;
  all.wait();
  const magpie::ProcStats total = magpie::stats().total;
  return {{"far_percent", 100 * static_cast<double>(total.steals_far) /
                              static_cast<double>(total.steals_succeeded)}};
}

struct Setting {
  const char* knob;
  const char* value;
  Work work;
  magpie::Options options = {};
  const char* debug = "";
};

std::vector<Setting> settings() {
  using magpie::Options;
  return {
      {"procs", "1", switching, Options{.procs = 1}},
      {"procs", "2", switching, Options{.procs = 2}},
      {"procs", "4", switching, Options{.procs = 4}},
      {"max_threads", "8", blocked, Options{.max_threads = 8}},
      {"max_threads", "32", blocked, Options{.max_threads = 32}},
      {"max_threads", "10000 (default)", blocked},
      {"stack_size", "32 KiB", parked, Options{.stack_size = 32 * 1024}},
      {"stack_size", "256 KiB (default)", parked},
      {"stack_size", "1 MiB", parked, Options{.stack_size = 1024 * 1024}},
      {"time_slice", "1 ms", sharing_loops, Options{.time_slice = 1ms}},
      {"time_slice", "10 ms (default)", sharing_loops},
      {"time_slice", "100 ms", sharing_loops, Options{.time_slice = 100ms}},
      {"preempt", "true (default)", beside_loops},
      {"preempt", "false", beside_loops, Options{.preempt = false}},
      {"preempt_signal", "SIGURG (default)", beside_loops},
      {"preempt_signal", "SIGRTMIN", beside_loops, Options{.preempt_signal = SIGRTMIN}},
      {"max_preempted", "1", sharing_loops, Options{.max_preempted = 1}},
      {"max_preempted", "100 (default)", sharing_loops},
      {"pin", "false (default)", switching},
      {"pin", "true", switching, Options{.pin = true}},
      {"on_deadlock", "exit (default)", switching},
      {"on_deadlock", "ignore", switching, Options{.on_deadlock = magpie::DeadlockPolicy::ignore}},
      {"on_quit", "dump (default)", switching},
      {"on_quit", "off", switching, Options{.on_quit = magpie::QuitPolicy::off}},
      {"report_blocked_after", "0 (default)", switching},
      {"report_blocked_after", "100 ms", switching, Options{.report_blocked_after = 100ms}},
      {"report_slow", "0 (default)", switching},
      {"report_slow", "10 ms", switching, Options{.report_slow = 10ms}},
      {"schedtrace", "1000", switching, {}, "schedtrace=1000"},
      {"schedtrace", "10", switching, {}, "schedtrace=10"},
      {"scheddetail", "1", switching, {}, "schedtrace=10,scheddetail=1"},
      {"preempt=off", "", beside_loops, {}, "preempt=off"},
      {"chaos", "0 (default)", switching},
      {"chaos", "42", switching, {}, "chaos=42"},
      {"slow", "10ms", switching, {}, "slow=10ms"},
      {"topology", "node:2 core:16", starting, Options{.procs = 32}, "topology=node:2 core:16"},
  };
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Args args(argc, argv);
  const std::string wanted = args.text("knob", "");
  const auto rounds = static_cast<std::size_t>(args.number("rounds", 3));
  bool is_known = false;
  for (const Setting& setting : settings()) {
    if (!wanted.empty() && wanted != setting.knob) continue;
    is_known = true;
    setenv("MAGPIE_DEBUG", setting.debug, 1);
    std::vector<Figures> all;
    for (std::size_t i = 0; i < rounds; ++i)
      all.push_back(magpie::run(setting.options, [&] { return setting.work(); }));
    std::printf("%-22s %-18s", setting.knob, setting.value);
    for (std::size_t k = 0; k < all[0].size(); ++k) {
      std::vector<double> values;
      for (const Figures& figures : all) values.push_back(figures[k].value);
      std::sort(values.begin(), values.end());
      std::printf("  %s=%.3g/%.3g", all[0][k].name, values[values.size() / 2], values[0]);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  if (is_known) return 0;
  std::fprintf(stderr, "bench_scaling_knobs: there is no knob \"%s\"\n", wanted.c_str());
  return 2;
}
