// timeouts_test.cc: which connections have to go when room is needed, and when a server ends.

#include "http/timeouts.h"

#include <magpie/magpie.h>
#include <magpie/net/unix.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <vector>

#include "support/memory_stream.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::MemoryStream;

StateTimes no_times() {
  StateTimes times{};
  for (auto& ns : times.ns) ns = detail::kNoDeadline;
  return times;
}

// A connection that only waits.
class Waiting {
 public:
  explicit Waiting(const std::shared_ptr<Timeouts>& timeouts)
      : ends_(MemoryStream::pair()), clock_(*timeouts, *ends_.second) {}
  void enter(ConnectionState state) { clock_.enter(state); }
  // Waits for a body, of which nothing has come for that long.
  void wait_for_body(std::chrono::nanoseconds since, std::size_t memory) {
    clock_.note_body_memory(memory);
    clock_.enter_until(ConnectionState::body,
                       detail::steady_now_ns() - since.count() + kBodyTime.count());
  }
  static constexpr std::chrono::nanoseconds kBodyTime = 1h;
  bool has_to_end() const { return clock_.has_to_end(); }
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
  StateClock clock_;
};

void let_the_clock_go_on() {
  const std::int64_t now = rough_now_ns();
  EXPECT_TRUE(support::eventually([now] { return rough_now_ns() > now; }));
}

TEST(HttpTimeouts, WhatIsDueInThreeHundredYearsIsNeverDue) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(due_in(kSecond, detail::kNoDeadline - kSecond), detail::kNoDeadline);
  EXPECT_EQ(due_in(kSecond, detail::kNoDeadline), detail::kNoDeadline);
  EXPECT_GE(due_in(kSecond, kSecond), 2 * kSecond);
}

RT_TEST(HttpTimeouts, TheIdlestConnectionsHaveToGoFirst) {
  auto timeouts = std::make_shared<Timeouts>(no_times(), 1h);
  std::vector<std::unique_ptr<Waiting>> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(std::make_unique<Waiting>(timeouts));
    all.back()->enter(ConnectionState::idle);
    let_the_clock_go_on();
  }
  all[0]->enter(ConnectionState::busy);  // the oldest is used again
  all[0]->enter(ConnectionState::idle);
  all[1]->enter(ConnectionState::dormant);  // which makes it no younger
  all[3]->enter(ConnectionState::busy);
  timeouts->evict(2);
  EXPECT_FALSE(all[0]->has_to_end());
  EXPECT_TRUE(all[1]->has_to_end());
  EXPECT_TRUE(all[2]->has_to_end());
  EXPECT_FALSE(all[3]->has_to_end());
  EXPECT_FALSE(all[4]->has_to_end());
  EXPECT_TRUE(all[1]->is_woken());
  EXPECT_FALSE(all[4]->is_woken());
  timeouts->evict(2);  // those two are on their way
  EXPECT_FALSE(all[4]->has_to_end());
  timeouts->evict(3);
  EXPECT_TRUE(all[4]->has_to_end());
  EXPECT_FALSE(all[0]->has_to_end());
  timeouts->evict(64);
  EXPECT_TRUE(all[0]->has_to_end());
  EXPECT_FALSE(all[3]->has_to_end());  // busy
}

RT_TEST(HttpTimeouts, TheIdlestGoFirstAlsoAmongThoseOfTheSameMillisecond) {
  constexpr int kOfEach = 50;
  auto timeouts = std::make_shared<Timeouts>(no_times(), 1h);
  std::vector<std::unique_ptr<Waiting>> good, silent;
  const auto add = [&](auto& to) {
    to.push_back(std::make_unique<Waiting>(timeouts));
    to.back()->enter(ConnectionState::idle);
  };
  for (int i = 0; i < kOfEach; ++i) add(good);
  for (int i = 0; i < kOfEach; ++i) add(silent);
  for (auto& one : good) {  // the older connections are used again
    one->enter(ConnectionState::busy);
    one->enter(ConnectionState::idle);
  }
  timeouts->evict(kOfEach);
  for (auto& one : good) EXPECT_FALSE(one->has_to_end());
  for (auto& one : silent) EXPECT_TRUE(one->has_to_end());
}

RT_TEST(HttpTimeouts, ConnectionsThatNeverSentARequestGoBeforeIdleOnes) {
  auto timeouts = std::make_shared<Timeouts>(no_times(), 1h);
  Waiting idle(timeouts), silent(timeouts), half(timeouts);
  idle.enter(ConnectionState::idle);
  silent.enter(ConnectionState::fresh);
  half.enter(ConnectionState::head);
  sleep_for(1200ms);  // that long they are given
  Waiting fresh(timeouts);
  fresh.enter(ConnectionState::fresh);
  timeouts->evict(2);
  EXPECT_TRUE(silent.has_to_end());
  EXPECT_TRUE(half.has_to_end());
  EXPECT_FALSE(idle.has_to_end());
  timeouts->evict(3);
  EXPECT_TRUE(idle.has_to_end());
}

RT_TEST(HttpTimeouts, ConnectionsThatLingerGoBeforeIdleOnes) {
  StateTimes times = no_times();
  times.ns[static_cast<std::size_t>(ConnectionState::lingering)] =
      std::chrono::nanoseconds(1h).count();
  auto timeouts = std::make_shared<Timeouts>(times, 1h);
  Waiting idle(timeouts), lingers(timeouts);
  idle.enter(ConnectionState::idle);
  lingers.enter(ConnectionState::lingering);
  sleep_for(150ms);  // that long it is given
  Waiting just_answered(timeouts);
  just_answered.enter(ConnectionState::lingering);
  timeouts->evict(1);
  EXPECT_TRUE(lingers.has_to_end());
  EXPECT_TRUE(lingers.is_woken());
  EXPECT_FALSE(idle.has_to_end());
  timeouts->evict(64);
  EXPECT_TRUE(idle.has_to_end());
}

RT_TEST(HttpTimeouts, TheSlowestBodiesThatHaveMemoryEndFirst) {
  StateTimes times = no_times();
  times.ns[static_cast<std::size_t>(ConnectionState::body)] = Waiting::kBodyTime.count();
  auto timeouts = std::make_shared<Timeouts>(times, 1h);
  Waiting without_memory(timeouts), quick(timeouts), slow(timeouts), slower(timeouts),
      idle(timeouts);
  without_memory.wait_for_body(30min, 0);
  quick.wait_for_body(-10min, 5000);  // however long this test takes
  slow.wait_for_body(10min, 5000);
  slower.wait_for_body(20min, 5000);
  idle.enter(ConnectionState::idle);
  EXPECT_EQ(timeouts->end_slow_bodies(0), 0u);
  EXPECT_EQ(timeouts->end_slow_bodies(1), 1u);
  EXPECT_TRUE(slower.is_woken());
  EXPECT_FALSE(slow.is_woken());
  EXPECT_EQ(timeouts->end_slow_bodies(1), 1u);  // it is on its way
  EXPECT_FALSE(slow.is_woken());
  EXPECT_EQ(timeouts->end_slow_bodies(8), 2u);
  EXPECT_TRUE(slow.is_woken());
  for (Waiting* one : {&without_memory, &quick, &idle}) EXPECT_FALSE(one->is_woken());
}

RT_TEST(HttpTimeouts, AtTheEndIdleConnectionsHaveAMomentForARequestOnItsWay) {
  StateTimes times = no_times();
  auto timeouts = std::make_shared<Timeouts>(times, 1h);
  Waiting dormant(timeouts), idle(timeouts), busy(timeouts);
  dormant.enter(ConnectionState::idle);
  dormant.enter(ConnectionState::dormant);
  idle.enter(ConnectionState::idle);
  timeouts->drain();
  EXPECT_TRUE(dormant.is_woken());
  // After that it has a moment too, and then it is told, although nobody looked for an hour.
  busy.enter(ConnectionState::idle);
  for (Waiting* one : {&idle, &busy})
    EXPECT_TRUE(support::eventually([&] { return one->is_woken(); }));
}

// One whose peer has left, and who may want to hear of it again and again.
class Departed {
 public:
  explicit Departed(const std::shared_ptr<Timeouts>& timeouts)
      : stream_(left()), clock_(*timeouts, stream_) {}
  ~Departed() {
    clock_.forget_context();
    std::lock_guard hold(mutex_);
    when_told_ = nullptr;
  }
  void ask(std::function<void()> when_told) {
    std::lock_guard hold(mutex_);
    when_told_ = std::move(when_told);
    listen_locked();
  }
  // Of when_told: another time.
  void listen_locked() {
    Context context = Context::background().with_cancel();
    hear_.push_back(std::make_unique<std::stop_callback<Hear>>(context.stop_token(), Hear{*this}));
    clock_.cancel_if_peer_leaves(context);
  }

 private:
  static net::UnixConn left() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    net::UnixConn stream = net::UnixConn::adopt(ends[0]);
    ::close(ends[1]);
    return stream;
  }
  struct Hear {
    Departed& self;
    void operator()() const {
      std::lock_guard hold(self.mutex_);
      if (self.when_told_) self.when_told_();
    }
  };

  net::UnixConn stream_;
  StateClock clock_;
  Mutex mutex_;
  // guarded by mutex_, but for the end: nobody is told any more
  std::function<void()> when_told_;
  std::vector<std::unique_ptr<std::stop_callback<Hear>>> hear_;
};

RT_TEST(HttpTimeouts, EveryContextOfAClientThatLeftIsCancelledHoweverManyLeave) {
  auto timeouts = std::make_shared<Timeouts>(no_times(), 1ms);
  Departed oldest(timeouts);
  std::vector<std::unique_ptr<Departed>> newer;
  for (int i = 0; i < 70; ++i) newer.push_back(std::make_unique<Departed>(timeouts));
  // Those that were told ask again before the next look. The newest counts the looks.
  constexpr int kMostLooks = 1000;
  std::atomic<int> looks{0}, last_look{-1};
  for (auto& one : newer) {
    one->ask([&, is_newest = one == newer.back(), self = one.get()] {
      if (is_newest) ++looks;
      if (looks < kMostLooks) self->listen_locked();
    });
  }
  const int first_look = looks;
  oldest.ask([&] { last_look = looks.load(); });
  EXPECT_TRUE(support::eventually([&] { return last_look >= 0; }));
  EXPECT_LE(last_look - first_look, 2);
  newer.clear();
}

}  // namespace
}  // namespace magpie::http
