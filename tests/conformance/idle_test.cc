// idle_test.cc: a program in which nothing happens uses no CPU.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "support/rt_test.h"

namespace magpie {
namespace {

using support::eventually;

int my_thread_id() { return static_cast<int>(syscall(SYS_gettid)); }

std::set<int> threads_of_the_process() {
  std::set<int> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(std::stoi(entry.path().filename()));
  }
  return ids;
}

// Threads that run no goroutines: sysmon, and the one that makes the others.
constexpr std::size_t kHelpers = 2;

// Voluntary and involuntary context switches of each thread.
std::map<int, std::uint64_t> switches_of(const std::set<int>& threads) {
  std::map<int, std::uint64_t> all;
  for (const int id : threads) {
    std::ifstream status("/proc/self/task/" + std::to_string(id) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.find("ctxt_switches:") != std::string::npos) {
        all[id] += std::stoull(line.substr(line.find(':') + 1));
      }
    }
  }
  return all;
}

// Parks a hundred goroutines and main, then looks at the runtime's threads until nothing happens
// for two seconds. A sanitizer's own threads are there before run() and do not count, nor does the
// thread that looks.
enum class Besides { nothing, listener, main_blocks, main_blocks_and_timer };
bool stays_asleep(int procs, Besides besides) {
  const bool has_listener = besides == Besides::listener;
  const bool has_timer = besides == Besides::main_blocks_and_timer;
  const bool main_blocks = besides == Besides::main_blocks || has_timer;  // and keeps its P
  std::thread([] {}).join();  // ThreadSanitizer starts its own thread with the first one
  const std::set<int> not_ours = threads_of_the_process();
  const int caller = my_thread_id();
  WaitGroup finish;
  finish.add(1);
  bool asleep = false;

  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  std::array<int, 2> gate{};
  EXPECT_EQ(pipe(gate.data()), 0);
  const std::size_t waiting = 100U + (main_blocks ? 0 : 1) + (has_listener || has_timer ? 1 : 0);
  const int held = main_blocks ? 1 : 0;
  std::thread observer;
  run(Options{.procs = procs}, [&] {
    if (has_listener) go([&listener] { listener.accept(); });
    if (has_timer) go([] { sleep_for(std::chrono::hours(1)); });
    for (int i = 0; i < 100; ++i) go([&finish] { finish.wait(); });
    WaitGroup busy;  // so that every thread has had something to do
    for (int i = 0; i < 1000; ++i) busy.go([] { yield(); });
    for (int i = 0; i < 16; ++i) {  // so that there are more threads than are kept
      busy.go([] { blocking([] { usleep(20'000); }); });
    }
    busy.wait();

    observer = std::thread([&, procs] {
      EXPECT_TRUE(eventually([=] {
        const Stats now = stats();
        // While others were not yet through, sysmon may have taken the P that main held.
        bool ps_are_idle = now.idle_procs == procs - held || now.idle_procs == procs;
        return now.waiting == waiting && ps_are_idle && now.idle_threads == now.threads - held;
      }));
      std::set<int> ours;
      EXPECT_TRUE(eventually([&] {  // a thread that is not counted any more has yet to end
        ours = threads_of_the_process();
        for (const int id : not_ours) ours.erase(id);
        ours.erase(my_thread_id());
        ours.insert(caller);
        return ours.size() == static_cast<std::size_t>(num_threads()) + kHelpers;
      }));

      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the last one falls asleep
      // Threads beyond those that are kept wake up once more, after two seconds, and end.
      for (int window = 0; window < 3 && !asleep; ++window) {
        const auto before = switches_of(ours);
        std::this_thread::sleep_for(std::chrono::seconds(2));
        asleep = switches_of(ours) == before;
      }
      finish.done();
      EXPECT_EQ(write(gate[1], "x", 1), 1);
    });
    char byte;
    if (main_blocks) {
      EXPECT_EQ(read(gate[0], &byte, 1), 1);
    }
    finish.wait();
  });
  observer.join();
  for (const int end : gate) close(end);
  return asleep;
}

void expect_sleep(int procs, Besides besides) {
  bool asleep = false;
  for (int attempt = 0; attempt < 5 && !asleep; ++attempt) asleep = stays_asleep(procs, besides);
  EXPECT_TRUE(asleep) << "procs = " << procs;
}

TEST(Idle, NoThreadWakesUpWhileAllGoroutinesWait) {
  for (const int procs : {1, 4}) expect_sleep(procs, Besides::nothing);
}
TEST(Idle, NoThreadWakesUpWhileOneWaitsForConnections) {
  for (const int procs : {1, 4}) expect_sleep(procs, Besides::listener);
}
TEST(Idle, NoThreadWakesUpWhileOneBlocksItsThread) { expect_sleep(2, Besides::main_blocks); }
TEST(Idle, NoThreadWakesUpWhileOneBlocksItsThreadAndATimerIsFar) {
  expect_sleep(2, Besides::main_blocks_and_timer);
}

}  // namespace
}  // namespace magpie
