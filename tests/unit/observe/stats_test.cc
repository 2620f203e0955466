// stats_test.cc: the numbers that stats() shows.

#include <magpie/magpie.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <set>
#include <thread>
#include <vector>

#include "sched/run/inside.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::eventually;
using support::PlainThread;

TEST(Stats, WithoutARuntimeTheyAreEmpty) {
  const Stats none = stats();
  EXPECT_TRUE(none.procs.empty());
  EXPECT_EQ(none.goroutines, 0u);
  EXPECT_EQ(none.threads, 0);
}

RT_TEST(Stats, ThereIsOneEntryForEveryP) {
  const Stats now = stats();
  ASSERT_EQ(now.procs.size(), static_cast<std::size_t>(procs()));
  for (std::size_t i = 0; i < now.procs.size(); ++i)
    EXPECT_EQ(now.procs[i].id, static_cast<int>(i));
}

RT_TEST(Stats, EveryGoroutineIsCountedWhenItStartsAndWhenItEnds) {
  const Stats before = stats();
  WaitGroup all;
  for (int i = 0; i < 1000; ++i) all.go([] {});
  all.wait();
  EXPECT_TRUE(eventually(
      [&] { return stats().total.goroutines_ended == before.total.goroutines_ended + 1000; }));
  EXPECT_EQ(stats().total.goroutines_started, before.total.goroutines_started + 1000);
}

RT_TEST(Stats, TheTotalIsTheSumOverThePs) {
  WaitGroup all;
  for (int i = 0; i < support::scaled(1000); ++i) all.go([] { yield(); });
  all.wait();
  const Stats now = stats();
  std::uint64_t ended = 0, stolen = 0;
  for (const ProcStats& p : now.procs) {
    ended += p.goroutines_ended;
    stolen += p.goroutines_stolen;
  }
  EXPECT_EQ(now.total.goroutines_ended, ended);
  EXPECT_EQ(now.total.goroutines_stolen, stolen);
}

RT_TEST(Stats, CountersMakeSenseTogether) {
  WaitGroup all;
  const int goroutines = support::scaled(2000);
  for (int i = 0; i < goroutines; ++i) {
    all.go([] {
      for (int k = 0; k < 5; ++k) yield();
    });
  }
  all.wait();
  const ProcStats total = stats().total;
  EXPECT_LE(total.steals_succeeded, total.steals_tried);
  EXPECT_LE(total.steals_succeeded, total.goroutines_stolen);
  EXPECT_LE(total.runnext_stolen, total.steals_succeeded);
  EXPECT_LE(total.ticks, total.switches);
  EXPECT_GE(total.goroutines_spilled, total.overflows);
  EXPECT_GE(total.switches, static_cast<std::uint64_t>(goroutines));
  EXPECT_GT(total.busy_ns, 0);
}

// A counter, as /metrics shows it: a search that ends takes nothing back. The second P finds
// nothing while main computes, so it searches again and again.
TEST(Stats, BusyTimeNeverFalls) {
  run(Options{.procs = 2}, [] {
    std::int64_t before[2] = {0, 0};
    std::uint64_t searches = 0;
    for (int i = 0; i < 100'000 && searches < 500; ++i) {
      go([] {});
      yield();
      const Stats now = stats();
      for (std::size_t p = 0; p < 2; ++p) {
        ASSERT_GE(now.procs[p].busy_ns, before[p]) << "P " << p;
        before[p] = now.procs[p].busy_ns;
      }
      searches = now.total.searches;
    }
  });
}

// Ring of 256: the next one does not fit, and leaves with the oldest 128.
TEST(Stats, AThousandStartedAtOneProcOverflowTheRing129AtATime) {
  run(Options{.procs = 1, .preempt = false}, [] {
    WaitGroup all;
    for (int i = 0; i < 1000; ++i) all.go([] {});
    const Stats full = stats();
    EXPECT_EQ(full.total.overflows, 6u);
    EXPECT_EQ(full.total.goroutines_spilled, 6u * 129);
    EXPECT_EQ(full.global_queue_length, 6u * 129);
    EXPECT_TRUE(full.procs[0].has_runnext);
    EXPECT_EQ(full.procs[0].queue_length, 1000u - 1 - 6 * 129);
    EXPECT_EQ(full.fresh, 1000u);

    all.wait();
    const Stats after = stats();
    EXPECT_GT(after.total.global_batches, 0u);
    EXPECT_EQ(after.global_queue_length, 0u);
    EXPECT_EQ(after.procs[0].queue_length, 0u);
    EXPECT_EQ(after.fresh, 0u);
    EXPECT_EQ(after.total.steals_tried, 0u);  // from whom?
  });
}

TEST(Stats, TwoHundredStartedAtOneProcDoNotOverflow) {
  run(Options{.procs = 1}, [] {
    WaitGroup all;
    for (int i = 0; i < 200; ++i) all.go([] {});
    EXPECT_EQ(stats().procs[0].queue_length, 199u);
    all.wait();
    EXPECT_EQ(stats().total.overflows, 0u);
  });
}

TEST(Stats, WorkThatIsAllBornOnOnePIsStolen) {
  for (const int n : {2, 8}) {
    run(Options{.procs = n}, [] {
      EXPECT_TRUE(eventually([] {
        WaitGroup all;
        for (int i = 0; i < 200; ++i) {
          all.go([] {
            std::atomic<int> work{0};
            while (work.fetch_add(1, std::memory_order_relaxed) < 10'000) {
            }
          });
        }
        all.wait();
        const Stats now = stats();
        return now.total.steals_succeeded > 0 && now.total.wakes > 0 && now.total.searches > 0 &&
               std::count_if(now.procs.begin(), now.procs.end(),
                             [](const ProcStats& p) { return p.goroutines_ended > 0; }) >= 2;
      }));
    });
  }
}

RT_TEST(Stats, GoroutinesThatWaitAreCountedAsWaiting) {
  WaitGroup gate;
  gate.add(1);
  WaitGroup all;  // for ThreadSanitizer: a number in stats() orders nothing
  for (int i = 0; i < 10; ++i) all.go([&gate] { gate.wait(); });
  EXPECT_TRUE(eventually([] {
    const Stats now = stats();
    return now.waiting == 10 && now.running >= 1 && now.fresh == 0 && now.goroutines == 11;
  }));
  gate.done();
  all.wait();
  EXPECT_TRUE(eventually([] { return stats().waiting == 0 && num_goroutines() == 1; }));
}

TEST(Stats, GoroutinesThatYieldedAreCountedAsRunnable) {
  run(Options{.procs = 1}, [] {
    bool over = false;
    for (int i = 0; i < 5; ++i) {
      go([&over] {
        while (!over) yield();
      });
    }
    EXPECT_EQ(stats().fresh, 5u);
    yield();
    const Stats now = stats();
    EXPECT_EQ(now.fresh, 0u);
    EXPECT_EQ(now.runnable, 5u);
    EXPECT_EQ(now.running, 1u);
    over = true;
    EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));
  });
}

TEST(Stats, PsWithoutWorkBecomeIdleAndTheirThreadsPark) {
  run(Options{.procs = 8}, [] {
    WaitGroup all;
    for (int i = 0; i < 1000; ++i) all.go([] { yield(); });
    all.wait();
    EXPECT_TRUE(eventually([] {
      const Stats now = stats();
      return now.idle_procs == 7 && now.searching_threads == 0 &&
             now.idle_threads == now.threads - 1;
    }));
    EXPECT_EQ(std::ranges::count_if(stats().procs, [](const ProcStats& p) { return p.idle; }), 7);
  });
}

TEST(Stats, EveryRunInPlaceIsCountedAsAClaim) {
  // A joiner whose slice is over gives way instead.
  run(Options{.procs = 1, .time_slice = std::chrono::hours(1)}, [] {
    for (int i = 0; i < 100; ++i) spawn([] {}).join();
    EXPECT_EQ(stats().total.joined_in_place, 100u);
  });
}

TEST(Stats, ThePsThatWereRemovedStayInTheTotal) {
  run(Options{.procs = 4}, [] {
    WaitGroup all;
    for (int i = 0; i < 1000; ++i) all.go([] { yield(); });
    all.wait();
    ASSERT_TRUE(eventually([] { return num_goroutines() == 1; }));
    const std::uint64_t before = stats().total.goroutines_ended;
    set_procs(1);
    const Stats now = stats();
    EXPECT_EQ(now.procs.size(), 1u);
    EXPECT_EQ(now.total.goroutines_ended, before);
  });
}

RT_TEST(Stats, PlainThreadsMayAskForThem) {
  std::size_t seen = 0;
  PlainThread thread([&seen] { seen = stats().procs.size(); });
  thread.join();
  EXPECT_EQ(seen, static_cast<std::size_t>(procs()));
}

TEST(NumGoroutines, IsZeroWithoutARuntime) {
  EXPECT_EQ(num_goroutines(), 0u);
  EXPECT_EQ(num_threads(), 0);
  EXPECT_EQ(procs(), 0);
  EXPECT_EQ(goroutine_id(), 0u);
}

RT_TEST(NumGoroutines, CountsThoseThatHaveNotEnded) {
  EXPECT_EQ(num_goroutines(), 1u);
  WaitGroup gate, all;
  gate.add(1);
  for (int i = 0; i < 50; ++i) all.go([&gate] { gate.wait(); });
  EXPECT_EQ(num_goroutines(), 51u);
  PlainThread thread([&] { all.go([&gate] { gate.wait(); }); });
  thread.join();
  EXPECT_EQ(num_goroutines(), 52u);
  gate.done();
  all.wait();  // a count says nothing about what they have done
  EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));
}

TEST(NumThreads, IsNeverAboveTheLimit) {
  for (int procs : support::kProcsOfEachTest) {
    run(Options{.procs = procs, .max_threads = 2}, [] {
      EXPECT_GE(num_threads(), 1);
      EXPECT_EQ(set_max_threads(2), 2);
      WaitGroup all;
      for (int i = 0; i < support::scaled(2000); ++i) all.go([] { yield(); });
      all.wait();
      EXPECT_LE(num_threads(), 2);
    });
  }
}

RT_TEST(GoroutineId, MainIsNumberOne) { EXPECT_EQ(goroutine_id(), 1u); }

RT_TEST(GoroutineId, EveryGoroutineHasAnotherNumber) {
  const auto each = static_cast<std::size_t>(support::scaled(2000));
  std::vector<std::uint64_t> ids(2 * each);
  WaitGroup all;
  auto start = [&](std::size_t first) {
    for (std::size_t i = first; i < first + each; ++i) {
      all.go([&ids, i] {
        ids[i] = goroutine_id();
        yield();
        EXPECT_EQ(goroutine_id(), ids[i]);  // the same wherever it goes on
      });
    }
  };
  PlainThread thread([&] { start(each); });
  start(0);
  thread.join();
  all.wait();
  std::set<std::uint64_t> different(ids.begin(), ids.end());
  EXPECT_EQ(different.size(), ids.size());
  EXPECT_EQ(different.count(0), 0u);
  EXPECT_EQ(different.count(1), 0u);
}

RT_TEST(GoroutineId, APlainThreadHasNone) {
  std::uint64_t id = 1;
  PlainThread thread([&id] { id = goroutine_id(); });
  thread.join();
  EXPECT_EQ(id, 0u);
}

std::atomic<int> looks_inside{0}, looks_outside{0};

// With a million goroutines the look at all of them takes milliseconds. Here a signal finds out
// where the goroutine is meanwhile, again and again.
TEST(Stats, AGoroutineLooksAtAllOthersOutsideTheRuntime) {
  struct sigaction look = {}, before;
  look.sa_handler = [](int) { ++(sched::is_inside_with_p() ? looks_inside : looks_outside); };
  look.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGUSR2, &look, &before), 0);
  run(Options{.procs = 1, .preempt = false}, [] {
    WaitGroup all;
    for (int i = 0; i < 100'000; ++i) all.go([] {});
    looks_inside = looks_outside = 0;
    std::atomic<bool> over{false};
    std::thread asks([&over, thread = pthread_self()] {
      while (!over) {
        pthread_kill(thread, SIGUSR2);
        std::this_thread::yield();
      }
    });
    while (looks_inside + looks_outside < 100) (void)stats();
    over = true;
    asks.join();
    all.wait();
  });
  sigaction(SIGUSR2, &before, nullptr);
  EXPECT_LT(looks_inside, looks_outside);
}

}  // namespace
}  // namespace magpie
