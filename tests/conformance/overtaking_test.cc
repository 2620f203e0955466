// overtaking_test.cc: how many turns others have before it is a goroutine's turn, for each line
// that it may stand in, while every other line is saturated (docs/fairness.md).

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ostream>
#include <thread>
#include <vector>

#include "support/let_signals_in.h"
#include "support/rt_test.h"
#include "support/synthetic_machine.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::let_signals_in;

std::uint64_t turns() { return stats().total.ticks; }

// Goroutines of every kind, and plain threads beside them, that always want to run. Their number
// never grows.
class Flood {
 public:
  static constexpr int kInRing = 20, kPairs = 4, kWoken = 20, kStarted = 20, kSleepers = 5,
                       kBlocking = 2, kLoops = 2;
  static constexpr int kAll =
      kInRing + 2 * kPairs + kWoken + kStarted + kSleepers + kBlocking + kLoops;

  Flood() {
    for (int i = 0; i < kInRing; ++i) repeat([] { yield(); });
    for (int i = 0; i < kPairs; ++i) play();
    for (int i = 0; i < kSleepers; ++i) repeat([] { sleep_for(100us); });
    for (int i = 0; i < kBlocking; ++i)
      repeat([] { blocking([] { std::this_thread::sleep_for(200us); }); });
    for (auto& progress : loops_) {
      all_.go([this, &progress] {
        while (!stop_.load(std::memory_order_relaxed)) {
          progress.fetch_add(1, std::memory_order_relaxed);
          let_signals_in();
        }
      });
    }
    for (auto& channel : woken_) {
      all_.go([channel] {
        while (channel.recv()) {
        }
      });
    }
    waker_ = std::thread([this] {
      while (!stop_) {
        for (auto& channel : woken_) (void)channel.try_send(1);
        std::this_thread::sleep_for(200us);
      }
    });
    starter_ = std::thread([this] {
      while (!stop_) {
        if (started_.load() < kStarted) {
          ++started_;
          go([this] { --started_; });
        } else {
          std::this_thread::yield();
        }
      }
    });
  }

  ~Flood() {
    stop_ = true;
    blocking([this] {
      waker_.join();
      starter_.join();
    });
    for (auto& channel : woken_) channel.close();
    all_.wait();
    EXPECT_TRUE(eventually([this] { return started_.load() == 0; }));
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  // Every loop has had turns since, each in several slices.
  bool loops_go_on() {
    for (auto& progress : loops_) {
      for (int slices = 0; slices < 5; ++slices) {
        const std::uint64_t before = progress.load();
        if (!eventually([&] {
              sleep_for(1ms);
              return progress.load() != before;
            }))
          return false;
      }
    }
    return true;
  }

 private:
  template <class F>
  void repeat(F step) {
    all_.go([this, step] {
      while (!stop_) step();
    });
  }

  void play() {
    Chan<void> there, back;
    all_.go([=, this] {
      while (!stop_) {
        there.send();
        if (!back.recv()) break;
      }
      there.close();
    });
    all_.go([=] {
      while (there.recv()) {
        if (!back.try_send()) back.send();
      }
      back.close();
    });
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> started_{0};
  std::vector<Chan<int>> woken_ = std::vector<Chan<int>>(kWoken);
  std::array<std::atomic<std::uint64_t>, kLoops> loops_{};
  WaitGroup all_;
  std::thread waker_, starter_;
};

// Notes how many turns others had between becoming ready and running.
class Count {
 public:
  void is_ready() { ready_ = turns(); }
  void runs() {
    most_ = std::max(most_.load(), turns() - ready_.load());
    ++times_;
  }
  int times() const { return times_; }
  std::uint64_t most() const { return most_; }

 private:
  std::atomic<std::uint64_t> ready_{0}, most_{0};
  std::atomic<int> times_{0};
};

constexpr int kTimes = 20;
// For each goroutine that may have been ready before.
constexpr std::uint64_t kTurnsEach = 125;
constexpr std::uint64_t kBound = kTurnsEach * (Flood::kAll + 1);
// Turns are counted on all Ps. While the P that has a goroutine in its inbox is in one turn, which
// may last for a slice, others have thousands.
constexpr std::uint64_t kTurnsOfOtherPs = 2'000'000;

// A plain thread makes a goroutine ready, waits until it has run, and does so again.
template <class MakeReady>
void count_from_thread(Count& count, MakeReady make_ready) {
  std::thread maker([&] {
    for (int i = 1; i <= kTimes; ++i) {
      count.is_ready();
      make_ready();
      while (count.times() < i) std::this_thread::yield();
    }
  });
  blocking([&] { maker.join(); });
}

// The machine is that of the test, or a text: then the global queue has a shard for each node.
struct Machine {
  const char* name;
  int procs;
  const char* topology = "";
};
void PrintTo(const Machine& machine, std::ostream* out) { *out << machine.name; }

class Overtaking : public testing::TestWithParam<Machine> {
 protected:
  int procs() const { return GetParam().procs; }
  std::uint64_t bound() const { return procs() == 1 ? kBound : kBound + kTurnsOfOtherPs; }

 private:
  support::SyntheticMachine machine_{GetParam().topology};
};
INSTANTIATE_TEST_SUITE_P(On, Overtaking,
                         testing::Values(Machine{"OneP", 1}, Machine{"TwoPs", 2},
                                         Machine{"FourPs", 4},
                                         Machine{"TwoNodes", 4, "node:2 core:2"},
                                         Machine{"FourNodes", 4, "node:4"}),
                         [](const auto& machine) { return machine.param.name; });

TEST_P(Overtaking, OfGoroutinesThatPlainThreadsStartIsBounded) {
  run(Options{.procs = procs()}, [this] {
    Count count;
    Flood flood;
    count_from_thread(count, [&] { go([&] { count.runs(); }); });
    EXPECT_LT(count.most(), bound());
  });
}

TEST_P(Overtaking, OfGoroutinesThatPlainThreadsWakeIsBounded) {
  run(Options{.procs = procs()}, [this] {
    Count count;
    Flood flood;
    Chan<int> channel;
    WaitGroup victim;
    victim.go([&] {
      while (channel.recv()) count.runs();
    });
    count_from_thread(count, [&] { channel.send(1); });
    channel.close();
    victim.wait();
    EXPECT_LT(count.most(), bound());
  });
}

TEST_P(Overtaking, OfGoroutinesThatTheNetworkWakesIsBounded) {
  run(Options{.procs = procs()}, [this] {
    Count count;
    Flood flood;
    const int event = eventfd(0, EFD_NONBLOCK);
    WaitGroup victim;
    victim.go([&] {
      for (int i = 0; i < kTimes; ++i) {
        std::uint64_t value;
        while (read(event, &value, sizeof value) < 0) net::wait_readable(event);
        count.runs();
      }
    });
    count_from_thread(count, [&] {
      const std::uint64_t one = 1;
      EXPECT_EQ(write(event, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    });
    victim.wait();
    close(event);
    EXPECT_LT(count.most(), bound());
  });
}

TEST_P(Overtaking, OfGoroutinesThatYieldIsBounded) {
  run(Options{.procs = procs()}, [this] {
    Count count;
    Flood flood;
    for (int i = 0; i < kTimes; ++i) {
      count.is_ready();
      yield();
      count.runs();
    }
    EXPECT_LT(count.most(), bound());
  });
}

TEST_P(Overtaking, OfGoroutinesThatComeBackFromBlockingCallsIsBounded) {
  run(Options{.procs = procs()}, [this] {
    Count count;
    Flood flood;
    for (int i = 0; i < kTimes; ++i) {
      blocking([&] {
        std::this_thread::sleep_for(300us);
        count.is_ready();
      });
      yield();
      count.runs();
    }
    EXPECT_LT(count.most(), 2 * bound());  // it also yields
  });
}

TEST_P(Overtaking, DoesNotKeepTimersFromFiring) {
  run(Options{.procs = procs()}, [] {
    Flood flood;
    for (int i = 0; i < kTimes; ++i) sleep_for(1ms);
  });
}

TEST_P(Overtaking, DoesNotKeepStoppedLoopsFromGoingOn) {
  run(Options{.procs = procs()}, [] {
    Flood flood;
    EXPECT_TRUE(flood.loops_go_on());
  });
}

}  // namespace
}  // namespace magpie
