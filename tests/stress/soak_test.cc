// soak_test.cc: servers under all that clients do to them, round after round, while everything else
// of the runtime goes on.
//
// Every answer is checked. After each round nothing may be left: goroutines, timers and descriptors
// are as many as before the first one, threads few, and memory no more than after the first rounds,
// but for a fixed amount.
//
//   MAGPIE_SOAK_SECONDS=600 build/release/tests/stress --gtest_filter='Soak.*'    as long as one
//                                                                                 likes

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "stress/soak_clients.h"
#include "stress/soak_site.h"
#include "support/openssl_tsan.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie::soak {
namespace {

using support::eventually;

#if defined(MAGPIE_TSAN)
constexpr int kClients = 8, kConnections = 3;
#else
constexpr int kClients = 16, kConnections = 8;
#endif
constexpr int kMostThreads = 64;  // some thirty are seen
constexpr int kWarmUpRounds = 50;
constexpr long kMostGrowthBytes = 32 << 20;

std::chrono::seconds length() {
  if (const char* text = std::getenv("MAGPIE_SOAK_SECONDS"))
    return std::chrono::seconds(std::atoi(text));
  const char* text = std::getenv("MAGPIE_STRESS");
  const std::string_view wish = text == nullptr ? "" : text;
  return wish == "short" ? 1s : wish == "long" ? 120s : 3s;
}

// ---- beside them

void other_work(WaitGroup& all, const std::atomic<bool>& over, int procs, std::uint64_t seed) {
  // Computes for longer than a time slice, and does not call the runtime meanwhile.
  all.go([&over, seed] {
    Random random(seed + 1);
    while (!over) {
      const auto until = std::chrono::steady_clock::now() + a_while(random, 25'000);
      while (!over.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < until) {
      }
      sleep_for(a_while(random, 25'000));
    }
  });
  for (int i = 0; i < 2; ++i) {
    all.go([&over] {
      while (!over) blocking([] { ::usleep(300); });
    });
  }
  all.go([&over] {
    Ticker ticker(700us);
    while (!over) {
      Timer late(1h);
      WaitGroup soon;
      soon.add(1);
      Timer call = after_func(200us, [&] { soon.done(); });
      select(on_recv(ticker.channel(), [](auto) {}), on_recv(late.channel(), [](auto) {}));
      late.stop();
      soon.wait();
    }
  });
  all.go([&over, procs, seed] {
    Random random(seed);
    while (!over) {
      set_procs(1 + static_cast<int>(up_to(random, static_cast<std::size_t>(procs) + 1)));
      sleep_for(a_while(random, 20'000));
    }
    set_procs(procs);
  });
}

// ---- what is left

struct Left {
  std::size_t goroutines = num_goroutines();
  std::size_t timers = stats().timers;
  std::ptrdiff_t descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                             std::filesystem::directory_iterator());
  bool operator==(const Left&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Left& left) {
  return out << left.goroutines << " goroutines, " << left.timers << " timers, " << left.descriptors
             << " descriptors";
}

long resident_bytes() {
  std::ifstream file("/proc/self/statm");
  long all = 0, resident = 0;
  file >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

void one_round(const Site& site, int procs, std::uint64_t seed) {
  std::atomic<bool> over = false;
  WaitGroup others, talking;
  other_work(others, over, procs, seed);
  {
    Clients clients(site);
    for (std::uint64_t i = 0; i < kClients; ++i) {
      talking.go([&clients, seed, i] {
        Random random(seed * 1000 + i);
        for (int left = kConnections; left > 0; --left) {
          const Behaviour& behaviour = kBehaviours[up_to(random, std::size(kBehaviours) - 1)];
          try {
            behaviour.run(clients, random);
          } catch (const std::exception& error) {
            ADD_FAILURE() << behaviour.name << ": " << error.what();
          }
        }
      });
    }
    talking.wait();
  }
  over = true;
  others.wait();
}

void soak(int procs) {
  const std::uint64_t seed = support::printed_seed();
  run(Options{.procs = procs}, [&] {
    {
      Site site;
      one_round(site, procs, seed);  // what is set up once is there afterwards
      // This one, three that serve, and two that accept for them.
      ASSERT_TRUE(eventually([] { return num_goroutines() == 6 && stats().timers == 0; }));
      const Left before;
      long first_resident = 0, resident = 0;
      int round = 1, most_threads = 0;
      const auto end = std::chrono::steady_clock::now() + length();
      for (; round < 3 || std::chrono::steady_clock::now() < end; ++round) {
        one_round(site, procs, seed + static_cast<std::uint64_t>(round));
        Left now;
        EXPECT_TRUE(eventually([&] { return (now = Left()) == before; }))
            << "there are " << now << ", and were " << before << ", after round " << round;
        EXPECT_LE(num_threads(), kMostThreads);
        most_threads = std::max(most_threads, num_threads());
        resident = resident_bytes();
        if (round <= kWarmUpRounds) first_resident = std::max(first_resident, resident);
#if !defined(MAGPIE_ASAN) && !defined(MAGPIE_TSAN)
        EXPECT_LE(resident, first_resident + kMostGrowthBytes) << "in round " << round;
#endif
        if (testing::Test::HasFailure()) break;
      }
      if (length() >= 60s) {  // threads that nobody needs any more end after two seconds
        EXPECT_TRUE(eventually([&] { return num_threads() <= procs + 8; })) << num_threads();
      }
      std::printf("%d rounds, %d threads, %ld KiB resident after %ld KiB\n", round, most_threads,
                  resident / 1024, first_resident / 1024);
    }
    EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));
  });
  if (testing::Test::HasFailure())
    std::printf("MAGPIE_SEED=%llu repeats it, as far as it can be\n",
                static_cast<unsigned long long>(seed));
}

TEST(Soak, NothingIsLostOrLeftAtTwoProcs) { soak(2); }
TEST(Soak, NothingIsLostOrLeftAtFourProcs) { soak(4); }

}  // namespace
}  // namespace magpie::soak
