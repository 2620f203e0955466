#include "lab/calibrate.h"

#include <linux/futex.h>
#include <magpie/magpie.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/cpu.h"
#include "sched/policy.h"

namespace magpie::lab {
namespace {

constexpr int kBatches = 60;

// The smallest time of one of `per_batch` operations.
template <class Batch>
Ns smallest(int per_batch, Batch batch) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < kBatches; ++i) {
    const Ns begin = base::now_ns();
    batch();
    least = std::min(least, static_cast<double>(base::now_ns() - begin) / per_batch);
  }
  return static_cast<Ns>(least + 0.5);
}

Options one_p() {
  Options options;
  options.procs = 1;
  return options;
}

// Two goroutines take turns: a pop and a switch each.
Ns turn_cost() {
  Ns cost = 0;
  run(one_p(), [&] {
    constexpr int kTurns = 2'000;
    bool ends = false;
    WaitGroup other;
    other.add(1);
    go([&] {
      while (!ends) yield();
      other.done();
    });
    cost = smallest(2 * kTurns, [] {
      for (int i = 0; i < kTurns; ++i) yield();
    });
    ends = true;
    other.wait();
  });
  return cost;
}

// Starts goroutines that do nothing, and lets them run.
Ns life_cost() {
  Ns cost = 0;
  run(one_p(), [&] {
    constexpr int kGoroutines = 200;
    WaitGroup all;
    cost = smallest(kGoroutines, [&] {
      all.add(kGoroutines);
      for (int i = 0; i < kGoroutines; ++i) go([&] { all.done(); });
      all.wait();
    });
  });
  return cost;
}

// Two goroutines wake each other over channels: a wake-up, a pop and a switch each.
Ns wake_up_cost() {
  Ns cost = 0;
  run(one_p(), [&] {
    constexpr int kRounds = 1'000;
    Chan<int> there, back;
    go([&] {
      while (auto value = there.recv()) back.send(*value);
    });
    cost = smallest(2 * kRounds, [&] {
      for (int i = 0; i < kRounds; ++i) {
        there.send(i);
        (void)back.recv();
      }
    });
    there.close();
  });
  return cost;
}

// A cache line goes from one CPU to another. While both threads run, a batch of some round trips
// takes a few microseconds; if one does not run, the batch is not the smallest.
Ns line_cost() {
  constexpr int kTrips = 200;
  std::atomic<int> ball{0};       // atomic, a hint: odd: the other thread has it, even: this one
  std::atomic<bool> ends{false};  // atomic, a hint: the other thread shall end
  std::thread other([&] {
    while (!ends.load(std::memory_order_relaxed)) {
      int seen = ball.load(std::memory_order_acquire);
      if (seen % 2 == 1) ball.store(seen + 1, std::memory_order_release);
    }
  });
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < 20 * kBatches; ++i) {
    const Ns begin = base::now_ns();
    int trips = 0;
    for (; trips < kTrips; ++trips) {
      const int odd = ball.load(std::memory_order_relaxed) + 1;
      ball.store(odd, std::memory_order_release);
      int looks = 0;
      while (ball.load(std::memory_order_acquire) == odd && looks < 10'000) ++looks;
      if (looks == 10'000) break;
    }
    if (trips == kTrips)
      least = std::min(least, static_cast<double>(base::now_ns() - begin) / (2 * kTrips));
    // After a break the other thread still answers: wait for it, so that the next trip is even.
    while (ball.load(std::memory_order_acquire) % 2 == 1) std::this_thread::yield();
  }
  ends.store(true, std::memory_order_relaxed);
  other.join();
  const bool has_one_cpu = least == std::numeric_limits<double>::max();
  return has_one_cpu ? Costs().probe_near : static_cast<Ns>(least + 0.5);
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  return syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

struct WakeCosts {
  Ns call = 0, latency = 0;
};

// A sleeping thread is woken: what the call costs, and when the thread runs.
WakeCosts wake_costs() {
  constexpr int kWakes = 300;
  std::atomic<std::uint32_t> word{0};  // atomic, a hint: the round, on which the sleeper waits
  std::atomic<Ns> woke_at{0};          // atomic, a hint: written by the sleeper, 0: not yet
  std::thread sleeper([&] {
    for (std::uint32_t round = 0; round < kWakes; ++round) {
      while (word.load(std::memory_order_acquire) == round) futex(word, FUTEX_WAIT_PRIVATE, round);
      woke_at.store(base::now_ns(), std::memory_order_release);
    }
  });
  std::vector<Ns> calls, latencies;
  for (std::uint32_t round = 0; round < kWakes; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // it sleeps by then
    woke_at.store(0, std::memory_order_relaxed);
    const Ns begin = base::now_ns();
    word.store(round + 1, std::memory_order_release);
    futex(word, FUTEX_WAKE_PRIVATE, 1);
    const Ns called = base::now_ns();
    Ns woke = 0;
    while ((woke = woke_at.load(std::memory_order_acquire)) == 0) std::this_thread::yield();
    calls.push_back(called - begin);
    latencies.push_back(woke - begin);
  }
  sleeper.join();
  // The lower quartile: a busy machine makes most wake-ups late, an idle one few.
  const auto quartile = [](std::vector<Ns>& all) {
    std::nth_element(all.begin(), all.begin() + kWakes / 4, all.end());
    return all[kWakes / 4];
  };
  return {quartile(calls), quartile(latencies)};
}

Ns lock_cost() {
  std::mutex mutex;
  std::vector<int> queue;
  queue.reserve(1'024);
  return smallest(1'000, [&] {
    queue.clear();
    for (int i = 0; i < 1'000; ++i) {
      std::lock_guard hold(mutex);
      queue.push_back(i);
    }
  });
}

Ns pause_cost() {
  return smallest(100 * sched::policy::kPausesPerRound, [] {
    for (int i = 0; i < 100 * sched::policy::kPausesPerRound; ++i) base::cpu_relax();
  });
}

}  // namespace

Costs calibrate() {
  Costs costs;
  const Ns turn = turn_cost();
  costs.pop = std::max<Ns>(1, turn / 4);
  costs.switching = std::max<Ns>(1, turn - costs.pop);
  costs.spawn = std::max<Ns>(1, life_cost() - turn);
  costs.ready = std::max<Ns>(1, wake_up_cost() - turn);
  const Ns line = line_cost();
  costs.probe_near = line;      // the line with the ends of the ring
  costs.steal_near = 3 * line;  // that line with ownership, the slots, and the record
  costs.miss = 2 * line;        // the record, and the top of the stack
  costs.global = 2 * line + lock_cost();
  costs.probe_far = 3 * costs.probe_near;
  costs.steal_far = 3 * costs.steal_near;
  costs.miss_far = 3 * costs.miss;
  const WakeCosts wake = wake_costs();
  costs.wake_call = wake.call;
  costs.wake = wake.latency;
  costs.spin_round = std::max<Ns>(1, pause_cost() * sched::policy::kPausesPerRound + line);
  return costs;
}

}  // namespace magpie::lab
