// lost_wake_up_test.cc: the check of work conservation names a scheduler that loses wake-ups.
//
// The program is linked with --wrap: the scheduler's calls of start_searcher() come to a mutant,
// which forgets those that it is told to forget. Nothing in the library knows of it.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/trace.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "analysis/trace_view.h"
#include "base/guard.h"
#include "sched/run/runtime.h"
#include "support/rt_test.h"

using magpie::sched::M;

namespace {
std::atomic<bool> loses_wake_ups{false};
std::atomic<int> lost{0};
}  // namespace

extern "C" {
void __real__ZN6magpie5sched14start_searcherEPNS0_1ME(M* m);
void __wrap__ZN6magpie5sched14start_searcherEPNS0_1ME(M* m);

void __wrap__ZN6magpie5sched14start_searcherEPNS0_1ME(M* m) {
  if (!loses_wake_ups) return __real__ZN6magpie5sched14start_searcherEPNS0_1ME(m);
  ++lost;
  magpie::base::Guard hold(magpie::sched::runtime->idle.lock());
  magpie::sched::runtime->idle.unbook_searcher_locked();
}
}

namespace magpie {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kSoon = 1s;

// Main computes and has work for the other P, which nobody wakes.
void lose_wake_ups(const std::string& path) {
  run(Options{.procs = 2, .preempt = false}, [&] {
    trace::start(path);
    loses_wake_ups = true;
    WaitGroup all;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(support::eventually([] { return stats().idle_threads != 0; }));
      for (int k = 0; k < 4; ++k) all.go([] {});  // one in the next slot, the others in the ring
      const auto until = std::chrono::steady_clock::now() + 30ms;
      while (std::chrono::steady_clock::now() < until) {
      }
    }
    loses_wake_ups = false;
    all.wait();
    trace::stop();
  });
}

TEST(Mutant, ThatLosesWakeUpsIsNamedWithinASecond) {
  char path[] = "/tmp/magpie-mutant-XXXXXX";
  close(mkstemp(path));
  lose_wake_ups(path);
  EXPECT_GT(lost, 0);
  const auto begin = std::chrono::steady_clock::now();
  std::string error;
  const std::unique_ptr<analysis::TraceView> view = analysis::TraceView::open(path, error);
  ASSERT_NE(view, nullptr) << error;
  view->wait();
  const std::shared_ptr<const analysis::Summary> summary = view->summary();
  std::remove(path);
  ASSERT_GT(summary->work.violations, 0u);
  EXPECT_LT(summary->work.worst.at(0).begin_ns, std::chrono::nanoseconds(kSoon).count());
  EXPECT_NE(summary->work.worst.at(0).goroutine, 0u);
  const std::vector<analysis::Finding> findings = analysis::examine(*summary, {});
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const analysis::Finding& finding) {
    return finding.id == "lost-wake-up";
  }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

}  // namespace
}  // namespace magpie
