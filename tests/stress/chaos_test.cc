// chaos_test.cc: a program with a little of everything, while the runtime chooses as badly as it
// may (src/sched/run/chaos.h).

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "support/let_signals_in.h"
#include "support/net_test.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;

class WithChaos {
 public:
  explicit WithChaos(std::uint64_t seed) {
    if (const char* text = std::getenv("MAGPIE_DEBUG")) before_ = text;
    setenv("MAGPIE_DEBUG", ("chaos=" + std::to_string(seed)).c_str(), 1);
  }
  ~WithChaos() { setenv("MAGPIE_DEBUG", before_.c_str(), 1); }
  WithChaos(const WithChaos&) = delete;
  WithChaos& operator=(const WithChaos&) = delete;

 private:
  std::string before_;
};

constexpr int kEach = 20;

// Values through two channels, one of them without a buffer.
int send_through_pipes() {
  Chan<int> first(3), second;
  go([=] {
    for (int i = 1; i <= kEach; ++i) first.send(i);
    first.close();
  });
  go([=] {
    while (auto value = first.recv()) second.send(*value);
    second.close();
  });
  int sum = 0;
  while (auto value = second.recv()) sum += *value;
  return sum;
}

int fib(int n) {
  if (n < 2) return n;
  JoinHandle<int> one = spawn(fib, n - 1);
  int other = fib(n - 2);
  return one.join() + other;
}

int count_under_locks() {
  Mutex ours;
  std::mutex theirs;
  int count = 0;
  WaitGroup group;
  for (int i = 0; i < kEach; ++i) {
    group.go([&, i] {
      std::lock_guard hold(ours);
      if (i % 3 == 0) yield();
      std::lock_guard hold_too(theirs);
      ++count;
    });
  }
  group.wait();
  return count;
}

int sleep_and_block() {
  std::atomic<int> count{0};
  WaitGroup group;
  for (int i = 0; i < kEach; ++i) {
    group.go([&, i] {
      sleep_for(std::chrono::microseconds(i * 50));
      blocking([&] { usleep(static_cast<useconds_t>(i * 10)); });
      usleep(100);  // undeclared
      ++count;
    });
  }
  group.wait();
  return count;
}

int wait_in_loops() {
  std::atomic<bool> stop{false};
  WaitGroup group;
  for (int i = 0; i < 2; ++i) group.go([&] { support::spin_until(stop); });
  sleep_for(2ms);
  stop = true;
  group.wait();
  return 2;
}

int stay_on_threads() {
  std::atomic<int> count{0};
  WaitGroup group;
  for (int i = 0; i < 3; ++i) {
    group.go([&] {
      ThreadLock here;
      const pid_t thread = gettid();
      for (int k = 0; k < 5; ++k) {
        sleep_for(100us);
        yield();
        if (gettid() == thread) ++count;
      }
    });
  }
  group.wait();
  return count;
}

int come_from_outside() {
  Chan<int> values;
  support::PlainThread thread([=] {
    for (int i = 0; i < kEach; ++i) values.send(1);
    values.close();
  });
  int sum = 0;
  while (auto value = values.recv()) sum += *value;
  return sum;
}

void do_everything() {
  JoinHandle<int> pipes = spawn(send_through_pipes);
  JoinHandle<int> tree = spawn(fib, 10);
  JoinHandle<int> locks = spawn(count_under_locks);
  JoinHandle<int> sleeps = spawn(sleep_and_block);
  JoinHandle<int> loops = spawn(wait_in_loops);
  JoinHandle<int> threads = spawn(stay_on_threads);
  JoinHandle<int> outside = spawn(come_from_outside);
  const int before = set_procs(3);
  EXPECT_EQ(pipes.join(), kEach * (kEach + 1) / 2);
  EXPECT_EQ(tree.join(), 55);
  set_procs(before);
  EXPECT_EQ(locks.join(), kEach);
  EXPECT_EQ(sleeps.join(), kEach);
  EXPECT_EQ(loops.join(), 2);
  EXPECT_EQ(threads.join(), 15);
  EXPECT_EQ(outside.join(), kEach);
  EXPECT_TRUE(support::eventually([] { return num_goroutines() == 1; }));
}

TEST(StressChaos, AMixedProgramGivesTheRightResultsWithEverySeed) {
  const std::uint64_t first = support::printed_seed();
  for (int i = 0; i < support::scaled(40); ++i) {
    WithChaos chaos(first + static_cast<std::uint64_t>(i) + 1);
    for (int procs : {1, 2, 8}) {
      SCOPED_TRACE(testing::Message()
                   << "procs = " << procs << ", MAGPIE_DEBUG=" << std::getenv("MAGPIE_DEBUG"));
      run(Options{.procs = procs, .time_slice = 2ms}, do_everything);
    }
    if (HasFailure()) return;
  }
}

// While an event is on its way from the poller to a queue nobody waits and nobody runs.
TEST(StressChaos, ThoseWhoWaitForConnectionsAreNotTakenForDeadlocked) {
  const std::uint64_t first = support::printed_seed();
  for (int i = 0; i < support::scaled(60); ++i) {
    WithChaos chaos(first + static_cast<std::uint64_t>(i) + 1);
    run(Options{.procs = 16}, [] {
      for (int k = 0; k < 100; ++k) {
        auto [client, server] = support::tcp_pair();
        WaitGroup both;
        both.go([&s = server] {
          std::byte one[1];
          EXPECT_EQ(s.read(one), 0u);
        });
        both.go([&c = client] { c.shutdown_write(); });
        both.wait();
      }
    });
  }
}

TEST(StressChaos, ChaosShowsInTheCounters) {
  WithChaos chaos(7);
  run(Options{.procs = 2}, [] {
    // Nobody waits for a P, so without chaos none would be taken.
    EXPECT_TRUE(support::eventually([] { return stats().total.handoffs > 0; }));
  });
}

}  // namespace
}  // namespace magpie
