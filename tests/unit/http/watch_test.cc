// watch_test.cc: which connections have to go when room is needed, and when a server ends.

#include "http/watch.h"

#include <magpie/magpie.h>

#include <chrono>
#include <memory>
#include <system_error>
#include <vector>

#include "support/memory_stream.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::MemoryStream;

PhaseTimes no_times() {
  PhaseTimes times{};
  for (auto& ns : times.ns) ns = detail::kNoDeadline;
  return times;
}

// A connection that only waits.
class Waiting {
 public:
  explicit Waiting(const std::shared_ptr<Watchman>& watchman)
      : ends_(MemoryStream::pair()), watched_(*watchman, *ends_.second) {}
  void enter(Phase phase) { watched_.enter(phase); }
  bool has_to_end() const { return watched_.has_to_end(); }
  // Whether a read is refused although there is something to read.
  bool is_woken() {
    ends_.first->write("x");
    std::byte byte{};
    try {
      ends_.second->read({&byte, 1});
      return false;
    } catch (const std::system_error& error) {
      return error.code() == std::errc::timed_out;
    }
  }

 private:
  std::pair<std::unique_ptr<MemoryStream>, std::unique_ptr<MemoryStream>> ends_;
  Watched watched_;
};

void let_the_clock_go_on() {
  const std::int64_t now = rough_now_ns();
  EXPECT_TRUE(support::eventually([now] { return rough_now_ns() > now; }));
}

RT_TEST(HttpWatch, TheIdlestConnectionsHaveToGoFirst) {
  auto watchman = std::make_shared<Watchman>(no_times(), 1h);
  std::vector<std::unique_ptr<Waiting>> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(std::make_unique<Waiting>(watchman));
    all.back()->enter(Phase::idle);
    let_the_clock_go_on();
  }
  all[0]->enter(Phase::busy);  // the oldest is used again
  all[0]->enter(Phase::idle);
  all[1]->enter(Phase::resting);  // rests, which makes it no younger
  all[3]->enter(Phase::busy);
  watchman->evict(2);
  EXPECT_FALSE(all[0]->has_to_end());
  EXPECT_TRUE(all[1]->has_to_end());
  EXPECT_TRUE(all[2]->has_to_end());
  EXPECT_FALSE(all[3]->has_to_end());
  EXPECT_FALSE(all[4]->has_to_end());
  EXPECT_TRUE(all[1]->is_woken());
  EXPECT_FALSE(all[4]->is_woken());
  watchman->evict(2);  // those two are on their way
  EXPECT_FALSE(all[4]->has_to_end());
  watchman->evict(3);
  EXPECT_TRUE(all[4]->has_to_end());
  EXPECT_FALSE(all[0]->has_to_end());
  watchman->evict(64);
  EXPECT_TRUE(all[0]->has_to_end());
  EXPECT_FALSE(all[3]->has_to_end());  // busy
}

RT_TEST(HttpWatch, ConnectionsThatNeverSentARequestGoBeforeIdleOnes) {
  auto watchman = std::make_shared<Watchman>(no_times(), 1h);
  Waiting idle(watchman), silent(watchman), half(watchman);
  idle.enter(Phase::idle);
  silent.enter(Phase::fresh);
  half.enter(Phase::head);
  sleep_for(1200ms);  // that long they are given
  Waiting fresh(watchman);
  fresh.enter(Phase::fresh);
  watchman->evict(2);
  EXPECT_TRUE(silent.has_to_end());
  EXPECT_TRUE(half.has_to_end());
  EXPECT_FALSE(idle.has_to_end());
  watchman->evict(3);
  EXPECT_TRUE(idle.has_to_end());
}

RT_TEST(HttpWatch, AtTheEndIdleConnectionsHaveAMomentForARequestOnItsWay) {
  PhaseTimes times = no_times();
  auto watchman = std::make_shared<Watchman>(times, 1h);
  Waiting resting(watchman), idle(watchman), busy(watchman);
  resting.enter(Phase::idle);
  resting.enter(Phase::resting);
  idle.enter(Phase::idle);
  watchman->drain();
  EXPECT_TRUE(resting.is_woken());
  // After that it has a moment too, and then it is told, although nobody looked for an hour.
  busy.enter(Phase::idle);
  for (Waiting* one : {&idle, &busy})
    EXPECT_TRUE(support::eventually([&] { return one->is_woken(); }));
}

}  // namespace
}  // namespace magpie::http
