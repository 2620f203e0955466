// particular_limits_test.cc: what single waits with a time limit promise, beside what all do
// (time_limits_test.cc).
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/process.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <ratio>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/step_clock.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using support::eventually;
using support::PlainThread;
using support::StepClock;

RT_TEST(TimeLimits, TheStandardsTimedLocksWorkWithAnRWMutex) {
  RWMutex mutex;
  std::unique_lock writer(mutex, 1ms);
  EXPECT_TRUE(writer.owns_lock());
  EXPECT_FALSE(std::shared_lock(mutex, 1ms).owns_lock());
  EXPECT_FALSE(std::shared_lock(mutex, system_clock::now() + 1ms).owns_lock());
  writer.unlock();
  EXPECT_TRUE(std::shared_lock(mutex, 1ms).owns_lock());
}

RT_TEST(TimeLimits, AWriterThatGivesUpKeepsNoReadersOut) {
  RWMutex mutex;
  std::shared_lock reader(mutex);
  EXPECT_FALSE(mutex.try_lock_for(1ms));
  EXPECT_TRUE(mutex.try_lock_shared());
  mutex.unlock_shared();
}

RT_TEST(TimeLimits, AValueThatWasNotSentInTimeIsUntouched) {
  Chan<std::unique_ptr<int>> unbuffered;
  auto value = std::make_unique<int>(7);
  EXPECT_FALSE(unbuffered.try_send_for(1ms, value));
  EXPECT_FALSE(unbuffered.try_send_until(steady_clock::now() + 1ms, std::move(value)));
  EXPECT_EQ(*value, 7);
  auto receiver = spawn([=] { return unbuffered.recv(); });
  EXPECT_TRUE(unbuffered.try_send_for(support::kGenerousLimit, value));
  EXPECT_EQ(value, nullptr);
  EXPECT_EQ(**receiver.join(), 7);
}

RT_TEST(TimeLimits, AClosedChannelEndsThemAtOnce) {
  Chan<int> closed;
  auto closer = spawn([=] { closed.close(); });
  EXPECT_EQ(closed.try_recv_for(support::kGenerousLimit), std::nullopt);
  EXPECT_THROW((void)closed.try_send_for(support::kGenerousLimit, 1), ClosedChannel);
  closer.join();
}

RT_TEST(TimeLimits, TheNilChannelWaitsAsLongAsItMay) {
  auto begun = steady_clock::now();
  EXPECT_EQ(Chan<int>::nil().try_recv_for(1ms), std::nullopt);
  EXPECT_FALSE(Chan<int>::nil().try_send_for(1ms, 1));
  EXPECT_GE(steady_clock::now() - begun, 2ms);
}

RT_TEST(TimeLimits, TryJoinDoesNotWait) {
  Chan<void> end;
  JoinHandle<void> handle = spawn([=] { end.recv(); });
  EXPECT_FALSE(handle.try_join());
  EXPECT_TRUE(handle.joinable());
  end.send();
  EXPECT_TRUE(eventually([&] { return handle.try_join(); }));
  EXPECT_FALSE(handle.joinable());
  EXPECT_THROW((void)handle.try_join(), std::logic_error);
}

RT_TEST(TimeLimits, TryJoinReturnsReferencesAsPointersAndThrowsWhatTheGoroutineThrew) {
  int answer = 42;
  JoinHandle<int&> reference = spawn([&]() -> int& { return answer; });
  EXPECT_EQ(reference.try_join_for(support::kGenerousLimit), &answer);
  JoinHandle<int> failing = spawn([]() -> int { throw std::runtime_error("no"); });
  EXPECT_THROW((void)failing.try_join_for(support::kGenerousLimit), std::runtime_error);
}

RT_TEST(TimeLimits, ATaskGroupThatIsWaitedForInTimeThrowsItsFirstException) {
  TaskGroup group;
  group.go([] { throw std::runtime_error("no"); });
  EXPECT_THROW((void)group.wait_for(support::kGenerousLimit), std::runtime_error);
}

RT_TEST(TimeLimits, AWorkerPoolIsClosedAlsoIfItIsNotDoneInTime) {
  WorkerPool pool(1);
  Chan<void> end;
  pool.submit([=] { end.recv(); });
  EXPECT_FALSE(pool.wait_for(1ms));
  EXPECT_THROW(pool.submit([] {}), ClosedChannel);
  end.send();
  EXPECT_TRUE(pool.wait_until(system_clock::now() + support::kGenerousLimit));
}

RT_TEST(TimeLimits, ARateLimiterTakesNothingIfTheTokensComeTooLate) {
  RateLimiter limiter(0.001, 2);
  EXPECT_TRUE(limiter.wait_for(0ns));
  EXPECT_TRUE(limiter.wait_until(system_clock::now()));
  EXPECT_FALSE(limiter.wait_for(1s));
  EXPECT_FALSE(limiter.wait_until(steady_clock::now() + 1s));
}

RT_TEST(TimeLimits, AWaitOnACondVarMayHaveATimeLimitAndAStopToken) {
  Mutex mutex;
  CondVar changed;
  std::stop_source source;
  std::unique_lock hold(mutex);
  auto never = [] { return false; };
  EXPECT_FALSE(changed.wait_for(hold, source.get_token(), 1ms, never));
  EXPECT_FALSE(changed.wait_until(hold, source.get_token(), system_clock::now() + 1ms, never));
  EXPECT_TRUE(hold.owns_lock());
  std::size_t waiting = stats().waiting;
  auto stopper = spawn([&] {
    EXPECT_TRUE(eventually([&] { return stats().waiting > waiting; }));
    source.request_stop();
  });
  EXPECT_FALSE(changed.wait_for(hold, source.get_token(), support::kGenerousLimit, never));
  stopper.join();
}

RT_TEST(TimeLimits, AWaitOnACondVarTakesAnyClock) {
  Mutex mutex;
  CondVar changed;
  std::unique_lock hold(mutex);
  EXPECT_EQ(changed.wait_until(hold, system_clock::now() + 1ms), std::cv_status::timeout);
  EXPECT_FALSE(changed.wait_until(hold, system_clock::now() + 1ms, [] { return false; }));
  auto until = StepClock::now() + 5ms;
  EXPECT_FALSE(changed.wait_until(hold, until, [] { return false; }));
  EXPECT_GE(StepClock::now(), until);
}

RT_TEST(TimeLimits, SleepAndContextsTakeAnyClock) {
  auto until = system_clock::now() + 2ms;
  sleep_until(until);
  EXPECT_GE(system_clock::now(), until);
  auto step = StepClock::now() + 5ms;
  sleep_until(step);
  EXPECT_GE(StepClock::now(), step);
  step = StepClock::now() + 5ms;
  std::error_code error;
  EXPECT_TRUE(sleep_until(step, Context::background(), error));
  EXPECT_GE(StepClock::now(), step);
  sleep_until(system_clock::time_point::min());

  Context context = Context::background().with_deadline(system_clock::now() + 2ms);
  context.done().recv();
  EXPECT_EQ(context.err(), std::errc::timed_out);
  EXPECT_FALSE(sleep_until(system_clock::time_point::max(), context, error));
}

RT_TEST(TimeLimits, AProcessIsWaitedForByAnyClock) {
  Process child = Process::spawn({"sleep", "60"});
  EXPECT_EQ(child.wait_until(system_clock::now() + 2ms), std::nullopt);
  std::error_code error;
  EXPECT_EQ(child.wait_until(system_clock::now() + 2ms, error), std::nullopt);
  EXPECT_FALSE(error);
  child.kill();
  EXPECT_TRUE(child.wait_until(system_clock::now() + support::kGenerousLimit).has_value());
}

TEST(TimeLimitsOutside, TimePointsThatAreTooFarAwayToCountNeverCome) {
  using Hours = std::chrono::time_point<system_clock, std::chrono::hours>;
  EXPECT_EQ(detail::deadline_at(Hours::max()), detail::kNoDeadline);
  EXPECT_LE(detail::deadline_at(Hours::min()), detail::steady_now_ns());
  EXPECT_EQ(detail::deadline_at(steady_clock::time_point::max()), detail::kNoDeadline);
  EXPECT_EQ(detail::steady_time(detail::kNoDeadline), steady_clock::time_point::max());
  auto file_time = std::chrono::file_clock::now() + 1h;
  EXPECT_GT(detail::deadline_at(file_time), detail::steady_now_ns());
  EXPECT_EQ(detail::deadline_at(std::chrono::file_clock::time_point::max()), detail::kNoDeadline);
}

// The clock counts nanoseconds, in which the year 1601 would lie far in the future.
RT_TEST(TimeLimits, ATimeBeforeTheFirstThatTheClockCanCountHasPassed) {
  const std::chrono::sys_days long_ago = std::chrono::year(1601) / 1 / 1;
  Chan<int> empty;
  EXPECT_EQ(empty.try_recv_until(long_ago), std::nullopt);
  sleep_until(long_ago);
  Mutex mutex;
  std::unique_lock hold(mutex);
  EXPECT_FALSE(mutex.try_lock_until(long_ago));
  CondVar changed;
  EXPECT_EQ(changed.wait_until(hold, long_ago), std::cv_status::timeout);
  EXPECT_FALSE(changed.wait_until(hold, long_ago, [] { return false; }));
  EXPECT_FALSE(changed.wait_until(hold, std::stop_token(), long_ago, [] { return false; }));
}

// The difference of two unsigned numbers is never below zero.
RT_TEST(TimeLimits, ATimeInUnsignedNumbersThatHasPassedIsNotWaitedFor) {
  using Unsigned = std::chrono::duration<std::uint64_t, std::nano>;
  const std::chrono::time_point<system_clock, Unsigned> past(Unsigned(5));
  const detail::DeadlineNs at_once = detail::deadline_at(past);
  EXPECT_LE(at_once, detail::steady_now_ns());
  EXPECT_FALSE(detail::is_to_come(past));
  const std::chrono::time_point<system_clock, Unsigned> future(
      std::chrono::duration_cast<Unsigned>((system_clock::now() + 24h).time_since_epoch()));
  EXPECT_GT(detail::deadline_at(future), detail::steady_now_ns() + nanoseconds(23h).count());
  EXPECT_LT(detail::deadline_at(future), detail::steady_now_ns() + nanoseconds(25h).count());
}

// Their common unit with a clock of nanoseconds is too fine for the time since 1970.
TEST(TimeLimitsOutside, TimesInOddUnitsAreConvertedWithoutOverflow) {
  using Samples = std::chrono::duration<std::int64_t, std::ratio<1, 44'100>>;
  using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
  using SampleTime = std::chrono::time_point<system_clock, Samples>;
  const auto now = std::chrono::floor<std::chrono::seconds>(system_clock::now());
  const SampleTime in_an_hour = now + 1h;
  EXPECT_NEAR(static_cast<double>(detail::deadline_at(in_an_hour) - detail::steady_now_ns()),
              3.6e12, 60e9);
  EXPECT_TRUE(detail::is_to_come(in_an_hour));
  EXPECT_FALSE(detail::is_to_come(SampleTime(now - 1h)));
  for (Picoseconds time :
       {Picoseconds::min(), Picoseconds(-5), Picoseconds(5), Picoseconds::max()}) {
    const std::chrono::time_point<system_clock, Picoseconds> in_1970(time);
    const detail::DeadlineNs at_once = detail::deadline_at(in_1970);
    EXPECT_LE(at_once, detail::steady_now_ns());
    EXPECT_FALSE(detail::is_to_come(in_1970));
  }
}

TEST(TimeLimitsOutside, TimesBeforeAnEpochKeepTheirNanoseconds) {
  using std::chrono::file_clock;  // its epoch lies in the future
  const auto time = file_clock::now() + 24h;
  std::int64_t left = detail::deadline_at(time) - detail::steady_now_ns();
  EXPECT_NEAR(static_cast<double>(left), 86.4e12, 60e9);
  EXPECT_EQ(detail::ns_since_epoch(nanoseconds(-5)), -5);
  EXPECT_EQ(detail::ns_since_epoch(std::chrono::hours::min()), -detail::kNoDeadline);
  EXPECT_EQ(detail::ns_since_epoch(std::chrono::hours::max()), detail::kNoDeadline);
}

TEST(TimeLimitsOutside, DurationsInOddUnitsAreConvertedWithoutOverflow) {
  using Samples = std::chrono::duration<std::int64_t, std::ratio<1, 44'100>>;
  constexpr std::chrono::nanoseconds kLong = 24h * 300;
  std::int64_t long_ns = detail::whole_ns(Samples(std::chrono::seconds(24h * 300)));
  EXPECT_GE(long_ns, kLong.count());
  EXPECT_LE(long_ns, (kLong + 1us).count());

  constexpr std::int64_t kPrime = 1'000'000'007;
  using Ticks = std::chrono::duration<std::int64_t, std::ratio<1, kPrime>>;
  std::int64_t short_ns = detail::whole_ns(Ticks(13 * kPrime));
  EXPECT_GE(short_ns, nanoseconds(13s).count());
  EXPECT_LE(short_ns, nanoseconds(13s + 1us).count());
  EXPECT_EQ(detail::whole_ns(Ticks(kPrime)), nanoseconds(1s).count());

  using Thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
  EXPECT_EQ(detail::whole_ns(Thirds::max()), detail::kNoDeadline);
}

TEST(TimeLimitsOutside, AChannelIsMadeWithTheLiteralZero) {
  Chan<int> c(0);
  EXPECT_EQ(c.capacity(), 0u);
  Chan<void> signal(0);
  EXPECT_EQ(signal.capacity(), 0u);
}

TEST(TimeLimitsOutside, ThePolicyThatExitsIsCalledSo) {
  EXPECT_EQ(Options{}.on_deadlock, DeadlockPolicy::exit);
  EXPECT_EQ(DeadlockPolicy::abort, DeadlockPolicy::exit);  // what the API calls it
  EXPECT_NE(DeadlockPolicy::report, DeadlockPolicy::exit);
}

}  // namespace
}  // namespace magpie
