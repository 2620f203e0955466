// homes_test.cc: Ps with distances between them, on machines that are only a text, and pinning.

#include <magpie/magpie.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cpus/affinity.h"
#include "sched/entry.h"
#include "sched/run/runtime.h"
#include "support/rt_test.h"
#include "support/synthetic_machine.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::SyntheticMachine;

void compute(int steps) {
  for (int i = 0; i < steps; ++i) asm volatile("" ::: "memory");
}

TEST(Homes, OnAFlatMachineEveryStealIsNear) {
  SyntheticMachine machine("core:4");
  run(Options{.procs = 4}, [] {
    WaitGroup all;
    for (int i = 0; i < 2000; ++i) all.go([] { compute(2000); });
    all.wait();
    const ProcStats total = stats().total;
    EXPECT_EQ(total.steals_near, total.steals_succeeded);
    EXPECT_EQ(total.steals_far, 0u);
  });
}

// Whether, of the next hundred steals, at most a quarter come from afar. It would be half of them,
// give or take five, if all victims were alike.
bool steals_near_for_a_while() {
  constexpr std::uint64_t kSteals = 100;
  const ProcStats before = stats().total;
  const auto has_stolen = [&] {
    return stats().total.steals_succeeded >= before.steals_succeeded + kSteals;
  };
  if (!eventually(has_stolen)) return false;
  const ProcStats after = stats().total;
  const std::uint64_t far = after.steals_far - before.steals_far;
  return far <= (after.steals_succeeded - before.steals_succeeded) / 4;
}

// Every P has goroutines that start others, so no node has more to do than the other. The machine
// has fewer CPUs than Ps, and may be busy besides: while many threads wait for a CPU, their Ps are
// robbed from afar. So a calm while is waited for. With a CPU for each P at most 5 % of steals are
// far: tests/unit/lab/topology_test.cc.
TEST(Homes, InASteadyStateFewStealsAreFar) {
  SyntheticMachine machine("node:2 core:16");
  run(Options{.procs = 32}, [] {
    std::atomic<bool> over{false};
    WaitGroup all;
    for (int i = 0; i < 64; ++i) {
      all.go([&over] {
        while (!over.load(std::memory_order_relaxed)) {
          WaitGroup few;
          for (int child = 0; child < 8; ++child) few.go([] { compute(500); });
          few.wait();
        }
      });
    }
    EXPECT_TRUE(eventually(steals_near_for_a_while));
    over = true;
    all.wait();
    const ProcStats total = stats().total;
    EXPECT_EQ(total.steals_near + total.steals_far, total.steals_succeeded);
  });
}

// All goroutines begin on one P, and none ends before all run: each P of both nodes has to come.
TEST(Homes, ALopsidedStartReachesEveryPOfEveryNode) {
  SyntheticMachine machine("node:2 core:16");
  constexpr int kProcs = 32;
  run(Options{.procs = kProcs, .preempt = false}, [] {
    std::atomic<int> running{0};
    WaitGroup all;
    for (int i = 1; i < kProcs; ++i) {
      all.go([&running] {
        ++running;
        while (running.load() < kProcs - 1) ::sched_yield();
      });
    }
    all.wait();
    EXPECT_EQ(running.load(), kProcs - 1);
  });
}

TEST(Homes, AWakerStartsAnIdlePOfItsOwnNode) {
  SyntheticMachine machine("node:2 core:4");
  run(Options{.procs = 8, .preempt = false}, [] {
    // Main is on P 0. Three goroutines that stay need three more Ps.
    std::atomic<int> running{0};
    std::atomic<bool> over{false};
    WaitGroup all;
    for (int i = 0; i < 3; ++i) {
      all.go([&] {
        ++running;
        while (!over.load()) ::sched_yield();
      });
      while (running.load() != i + 1) ::sched_yield();
    }
    const Stats now = stats();
    for (int p = 4; p < 8; ++p) EXPECT_EQ(now.procs[static_cast<std::size_t>(p)].ticks, 0u) << p;
    over = true;
    all.wait();
  });
}

// Every P starts goroutines, and they block.
TEST(Homes, RecordsAndStacksAreOfTheNodeThatTookThem) {
  SyntheticMachine machine("node:2 core:2");
  run(Options{.procs = 4}, [] {
    std::atomic<bool> over{false};
    WaitGroup all;
    for (int i = 0; i < 8; ++i) {
      all.go([&over] {
        while (!over.load(std::memory_order_relaxed)) {
          WaitGroup few;
          for (int child = 0; child < 300; ++child) few.go([] { yield(); });
          few.wait();
        }
      });
    }
    sched::GPools& records = sched::runtime->records;
    EXPECT_TRUE(eventually([&] {
      return !records.of(0).carved_in(0).empty() && !records.of(1).carved_in(0).empty() &&
             sched::runtime->stacks.of(1).usage().stacks != 0;
    }));
    over = true;
    all.wait();
    for (const std::uint32_t node : {0u, 1u})
      for (const sched::G& g : records.of(node).carved_in(0)) EXPECT_EQ(g.node, node);
  });
}

TEST(Homes, TheNumberOfPsMayChangeOnAnyMachine) {
  SyntheticMachine machine("node:2 l3:2 core:2 pu:2");
  run(Options{.procs = 16}, [] {
    std::atomic<bool> over{false};
    WaitGroup all;
    for (int i = 0; i < 32; ++i) {
      all.go([&over] {
        while (!over.load(std::memory_order_relaxed)) {
          WaitGroup few;
          for (int child = 0; child < 4; ++child) few.go([] { compute(200); });
          few.wait();
        }
      });
    }
    for (const int procs : {1, 5, 40, 3, 16, 2, 100, 16}) {
      set_procs(procs);
      for (int i = 0; i < 10; ++i) yield();
    }
    over = true;
    all.wait();
  });
}

// ---- pinning

std::vector<int> cpus_of_this_thread() { return cpus::affinity_list(); }

// The goroutine is inside the runtime meanwhile, so it keeps its P and its thread.
bool is_at_home() {
  sched::Entry entry;
  const int home = entry.m()->p->home.cpu;
  cpu_set_t now;
  return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_COUNT(&now) == 1 &&
         CPU_ISSET(static_cast<std::size_t>(home), &now);
}

TEST(Pin, SurvivesHandOffsStopsAndResizes) {
  const std::vector<int> before = cpus_of_this_thread();
  run(Options{.procs = 4, .time_slice = 1ms, .pin = true}, [] {
    std::atomic<bool> over{false};
    std::atomic<int> astray{0};
    WaitGroup all;
    for (int i = 0; i < 8; ++i) {
      all.go([&, i] {
        while (!over.load()) {
          if (i % 4 == 0) blocking([] { ::usleep(200); });
          if (i % 4 == 1) compute(1'000'000);  // is stopped on the way
          if (i % 4 == 2) sleep_for(1ms);
          yield();
          if (!is_at_home()) ++astray;
        }
      });
    }
    for (int round = 0; round < 5; ++round) {
      for (const int procs : {1, 2, 5, 4}) {
        set_procs(procs);
        EXPECT_TRUE(is_at_home());
        sleep_for(2ms);
        EXPECT_TRUE(is_at_home());
      }
    }
    over = true;
    all.wait();
    EXPECT_EQ(astray.load(), 0);
  });
  EXPECT_EQ(cpus_of_this_thread(), before);
}

}  // namespace
}  // namespace magpie
