// bad_input_test.cc: options that make no sense, calls at the wrong time, and a system that refuses
// memory: a clear error, nothing lost, no hang.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/captured_stderr.h"
#include "support/os_faults.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::eventually;
using support::MapFaults;
using support::Refuse;

void expect_that_a_runtime_still_works() {
  EXPECT_EQ(run(Options{.procs = 2}, [] { return spawn([] { return 6 * 7; }).join(); }), 42);
}

template <class Error = std::invalid_argument, class F>
std::string complaint_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "(none)";
}

std::string complaint_about(const Options& options) {
  return complaint_of([&] { run(options, [] { ADD_FAILURE() << "main ran"; }); });
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

// ---- options

TEST(BadOptions, NegativeProcsAreRefused) {
  EXPECT_CONTAINS(complaint_about({.procs = -1}), "Options::procs is -1");
  EXPECT_CONTAINS(complaint_about({.procs = INT_MIN}), "must be positive, or 0");
  expect_that_a_runtime_still_works();
}

TEST(BadOptions, MoreProcsThanMemoryAreRefusedWithTheMemoryTheyWouldNeed) {
  EXPECT_CONTAINS(complaint_about({.procs = INT_MAX}), "2147483647 procs need");
  EXPECT_CONTAINS(complaint_about({.procs = INT_MAX}), "use fewer");
  expect_that_a_runtime_still_works();
}

TEST(BadOptions, AnEnvironmentThatIsNoPositiveNumberIsRefusedAndNamed) {
  for (const char* text : {"0", "-3", "four", "4x", " 4", "", "1.5", "99999999999999999999"}) {
    Environment wanted("MAGPIE_PROCS", text);
    EXPECT_CONTAINS(complaint_about({}), "MAGPIE_PROCS=" + std::string(text) + " ");
    EXPECT_EQ(run(Options{.procs = 3}, procs), 3);  // not asked, so no complaint
  }
  expect_that_a_runtime_still_works();
}

TEST(BadOptions, AnEnvironmentThatIsAPositiveNumberIsUsedUnlessOptionsSayOtherwise) {
  Environment wanted("MAGPIE_PROCS", "3");
  EXPECT_EQ(run(procs), 3);
  EXPECT_EQ(run(Options{.procs = 2}, procs), 2);
}

TEST(BadOptions, AStackSizeThatIsTooSmallOrNotWholePagesIsRefusedWithAGoodOne) {
  EXPECT_CONTAINS(complaint_about({.stack_size = 0}), "stack_size 0 is too small");
  EXPECT_CONTAINS(complaint_about({.stack_size = 4095}), "is too small");
  EXPECT_CONTAINS(complaint_about({.stack_size = 16 * 1024}), "is too small");
  EXPECT_CONTAINS(complaint_about({.stack_size = 256 * 1024 + 1}), "use 266240");
  EXPECT_CONTAINS(complaint_about({.stack_size = ~std::size_t{4095}}), "stack_size");
  expect_that_a_runtime_still_works();
}

TEST(BadOptions, TheSmallestStackThatIsAcceptedRunsGoroutines) {
  const std::size_t smallest = [] {
    std::size_t size = 4096;
    while (complaint_of([&] { run(Options{.stack_size = size}, [] {}); }) != "(none)") size += 4096;
    return size;
  }();
  EXPECT_LE(smallest, 64u * 1024);
  run(Options{.procs = 2, .stack_size = smallest}, [] {
    WaitGroup all;
    for (int i = 0; i < 100; ++i) {
      all.go([] {
        yield();
        EXPECT_THROW(throw std::runtime_error("caught"), std::runtime_error);
        yield();
      });
    }
    all.wait();
  });
}

TEST(BadOptions, FewerThanOneThreadIsRefused) {
  EXPECT_CONTAINS(complaint_about({.max_threads = 0}), "Options::max_threads is 0");
  EXPECT_CONTAINS(complaint_about({.max_threads = -5}), "at least 1 is needed");
  expect_that_a_runtime_still_works();
}

TEST(BadOptions, NegativeTimesOfReportsAreRefused) {
  using namespace std::chrono_literals;
  EXPECT_CONTAINS(complaint_about({.report_blocked_after = -1ms}), "must not be negative");
  EXPECT_CONTAINS(complaint_about({.report_slow = -1us}), "must not be negative");
  run(Options{.report_blocked_after = std::chrono::milliseconds::max(),
              .report_slow = std::chrono::microseconds::max()},
      [] { sleep_for(1ms); });
}

TEST(BadOptions, AnUnknownKindOfGuardIsRefused) {
  Environment guards("MAGPIE_GUARDS", "electric");
  EXPECT_CONTAINS(complaint_about({}), "MAGPIE_GUARDS=electric is unknown");
}

RT_TEST(BadGoOptions, AStackSizeThatMakesNoSenseIsRefusedAndNoGoroutineIsStarted) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{262145}}) {
    EXPECT_THROW(go(GoOptions{.stack_size = size}, [] { ADD_FAILURE() << "ran"; }),
                 std::invalid_argument);
    EXPECT_THROW((void)spawn(GoOptions{.stack_size = size}, [] { ADD_FAILURE() << "ran"; }),
                 std::invalid_argument);
  }
  EXPECT_EQ(num_goroutines(), 1u);
}

RT_TEST(BadProcs, SetProcsBelowOneOrBeyondMemoryIsRefusedAndChangesNothing) {
  const int before = procs();
  EXPECT_THROW(set_procs(0), std::invalid_argument);
  EXPECT_THROW(set_procs(-4), std::invalid_argument);
  EXPECT_THROW(set_procs(INT_MAX), std::invalid_argument);
  EXPECT_EQ(procs(), before);
  WaitGroup all;
  for (int i = 0; i < 50; ++i) all.go([] { yield(); });
  all.wait();
}

RT_TEST(BadThreads, SetMaxThreadsBelowOneIsRefusedAndChangesNothing) {
  EXPECT_THROW(set_max_threads(0), std::invalid_argument);
  EXPECT_EQ(set_max_threads(100), 10'000);
}

// ---- calls at the wrong time

RT_TEST(WrongTime, RunInsideRunIsRefusedWithWhatToUseInstead) {
  const std::string complaint = complaint_of<std::logic_error>([] { run([] {}); });
  EXPECT_CONTAINS(complaint, "run() inside run(); use go()");
  const std::string in_goroutine =
      spawn([] { return complaint_of<std::logic_error>([] { run([] {}); }); }).join();
  EXPECT_EQ(in_goroutine, complaint);
}

TEST(WrongTime, RunWhileAnotherThreadIsInRunIsRefused) {
  run(Options{.procs = 2}, [] {
    std::string complaint;
    std::thread([&] { complaint = complaint_of<std::logic_error>([] { run([] {}); }); }).join();
    EXPECT_CONTAINS(complaint, "one runtime at a time");
  });
  expect_that_a_runtime_still_works();
}

TEST(WrongTime, ManyThreadsThatAllWantToRunGetTheirTurnOrAClearRefusal) {
  std::atomic<int> ran{0}, refused{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        try {
          run(Options{.procs = 2}, [&] { ++ran; });
        } catch (const std::logic_error&) {
          ++refused;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(ran + refused, 80);
  EXPECT_GE(ran, 1);
}

TEST(WrongTime, WithoutARuntimeNothingCanBeStartedOrSet) {
  EXPECT_CONTAINS(complaint_of<std::logic_error>([] { go([] {}); }), "no runtime runs");
  EXPECT_CONTAINS(complaint_of<std::logic_error>([] { (void)spawn([] {}); }), "no runtime runs");
  EXPECT_CONTAINS(complaint_of<std::logic_error>([] { set_procs(2); }), "no runtime runs");
  EXPECT_CONTAINS(complaint_of<std::logic_error>([] { set_max_threads(2); }), "no runtime runs");
  WaitGroup group;
  EXPECT_THROW(group.go([] {}), std::logic_error);
  group.wait();  // was not left counted
}

TEST(WrongTime, WithoutARuntimeQuestionsAreAnsweredWithNothing) {
  EXPECT_EQ(procs(), 0);
  EXPECT_EQ(num_goroutines(), 0u);
  EXPECT_EQ(num_threads(), 0);
  EXPECT_EQ(goroutine_id(), 0u);
  EXPECT_GE(num_cpu(), 1);
  EXPECT_TRUE(stats().procs.empty());
  yield();
}

TEST(WrongTime, AnEmptyHandleCannotBeJoinedOrDetached) {
  JoinHandle<int> empty;
  EXPECT_FALSE(empty.joinable());
  EXPECT_THROW(empty.join(), std::logic_error);
  EXPECT_THROW(empty.detach(), std::logic_error);
}

TEST(WrongTime, PlainThreadsMayStartGoroutinesWhileRuntimesComeAndGo) {
  std::atomic<bool> stop{false};
  std::atomic<int> refused{0}, accepted{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        try {
          go([text = std::string(100, 'x'), big = std::array<char, 200>{}] {
            (void)text.size();
            (void)big.size();
          });
          (void)spawn([text = std::string(100, 'y')] { return text; });
          ++accepted;
        } catch (const std::logic_error&) {
          ++refused;
        }
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    run(Options{.procs = 2}, [&, target = accepted + 3] {
      EXPECT_TRUE(eventually([&] { return accepted >= target; }));
    });
  }
  stop = true;
  threads.clear();
  expect_that_a_runtime_still_works();
}

TEST(WrongTime, RunDoesNotEndWhileAPlainThreadIsInTheMiddleOfGo) {
  static std::atomic<bool> copying, returned, early;
  copying = returned = early = false;
  struct SlowToCopy {
    SlowToCopy() = default;
    SlowToCopy(const SlowToCopy&) {
      copying = true;
      for (int i = 0; i < 2000; ++i) std::this_thread::yield();
      early = returned.load();
    }
    void operator()() const {}
  };
  std::jthread thread;
  run(Options{.procs = 2}, [&] {
    thread = std::jthread([] {
      SlowToCopy slow;
      go(slow);
    });
    EXPECT_TRUE(eventually([] { return copying.load(); }));
  });
  returned = true;
  thread.join();
  EXPECT_FALSE(early);
}

// ---- memory refused

TEST(MemoryRefused, AtTheStartRunThrowsAndWorksAgainAfterwards) {
  for (const Refuse what : {Refuse::stacks, Refuse::records, Refuse::everything}) {
    {
      MapFaults refuse(what);
      EXPECT_THROW(run([] { ADD_FAILURE() << "main ran"; }), std::bad_alloc);
      EXPECT_EQ(procs(), 0);
      EXPECT_THROW(go([] {}), std::logic_error);
    }
    expect_that_a_runtime_still_works();
  }
}

// Starts with `start` until records run out; returns how many it started, or nothing if they never
// did.
template <class Start>
std::optional<int> start_until_refused(Start start) {
  for (int started = 0; started < 100'000; ++started) {
    try {
      start();
    } catch (const std::bad_alloc&) {
      return started;
    }
  }
  return std::nullopt;
}

RT_TEST(MemoryRefused, ForRecordsGoThrowsAndNothingIsLost) {
  std::atomic<int> ran{0};
  std::optional<int> by_go, by_spawn;
  auto owned = std::make_shared<int>(0);
  WaitGroup gate;  // none of them ends before main opens it: so records do run out
  gate.add(1);
  auto body = [&gate, &ran, owned] {
    gate.wait();
    ++ran;
  };
  {
    MapFaults refuse(Refuse::records);
    by_go = start_until_refused([&] { go(body); });
    by_spawn = start_until_refused([&] { spawn(body).detach(); });
  }
  ASSERT_TRUE(by_go.has_value());
  ASSERT_TRUE(by_spawn.has_value());
  gate.done();
  EXPECT_TRUE(eventually([&] { return ran == *by_go + *by_spawn; }));
  WaitGroup all;
  for (int i = 0; i < 3000; ++i) all.go([] {});
  all.wait();
  EXPECT_TRUE(eventually([&] { return owned.use_count() == 2; }));  // ours and body's
}

RT_TEST(MemoryRefused, ForStacksGoroutinesThatHaveNotStartedWaitAndFinishLater) {
  constexpr int kBlocked = 1000;
  std::atomic<int> started{0}, done{0};
  WaitGroup gate, all;
  gate.add(1);
  support::CapturedStderr captured;
  {
    MapFaults refuse(Refuse::stacks);
    for (int i = 0; i < kBlocked; ++i) {
      all.go([&] {
        ++started;
        gate.wait();
        ++done;
      });
    }
    // Those that got a stack block; the others cannot start, and main goes on.
    EXPECT_TRUE(eventually([] { return MapFaults::refusals() > 100; }));
    EXPECT_LT(started, kBlocked);
    MapFaults::relent();
    EXPECT_TRUE(eventually([&] { return started == kBlocked; }));
  }
  gate.done();
  all.wait();
  EXPECT_CONTAINS(captured.end(), "no memory for another goroutine stack");
  EXPECT_EQ(done, kBlocked);
}

RT_TEST(MemoryRefused, ForStacksAndThoseThatEndMakeRoomForTheOthers) {
  constexpr int kGoroutines = 1000;
  std::atomic<int> done{0};
  WaitGroup all;
  support::CapturedStderr captured;
  {
    MapFaults refuse(Refuse::stacks);
    for (int i = 0; i < kGoroutines; ++i) {
      all.go([&] {
        yield();
        ++done;
      });
    }
    all.wait();
  }
  EXPECT_EQ(done, kGoroutines);
}

RT_TEST(MemoryRefused, ForAStackOfItsOwnSizeTheGoroutineWaitsAndFinishesLater) {
  std::atomic<bool> ran{false};
  support::CapturedStderr captured;
  {
    MapFaults refuse(Refuse::stacks);
    go(GoOptions{.stack_size = 1 << 20}, [&] { ran = true; });
    EXPECT_TRUE(eventually([] { return MapFaults::refusals() > 0; }));
    EXPECT_FALSE(ran);
  }
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
}

// ---- uncaught exceptions

RT_TEST(UncaughtExceptions, GoToTheHandlerOnTheFailingGoroutineWhichThenEnds) {
  std::atomic<int> handled{0}, wrong{0};
  on_uncaught([&](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::runtime_error& known) {
      if (known.what() != std::to_string(goroutine_id())) ++wrong;
    } catch (...) {
      ++wrong;
    }
    yield();  // the handler may block
    if (std::current_exception() == nullptr) ++wrong;
    ++handled;
  });
  for (int i = 0; i < 50; ++i) {
    go([] {
      yield();
      throw std::runtime_error(std::to_string(goroutine_id()));
    });
  }
  EXPECT_TRUE(eventually([&] { return handled == 50; }));
  EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));
  on_uncaught({});
  EXPECT_EQ(wrong, 0);
}

RT_TEST(UncaughtExceptions, OfJoinableGoroutinesAreNotTheHandlersBusiness) {
  std::atomic<int> handled{0};
  on_uncaught([&](std::exception_ptr) { ++handled; });
  EXPECT_THROW(spawn([] { throw 1; }).join(), int);
  spawn([] { throw 2; }).detach();
  EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));
  on_uncaught({});
  EXPECT_EQ(handled, 0);
}

RT_TEST(UncaughtExceptions, InAGroupsGoroutineStillCountItDown) {
  std::atomic<int> handled{0};
  on_uncaught([&](std::exception_ptr) { ++handled; });
  WaitGroup all;
  for (int i = 0; i < 10; ++i) all.go([] { throw 1; });
  all.wait();
  EXPECT_TRUE(eventually([&] { return handled == 10; }));
  on_uncaught({});
}

// ---- empty functions

// What would be called later, where nobody could catch what it throws.
template <class F>
void expect_refused_where_called_later(F empty) {
  using namespace std::chrono_literals;
  const GoOptions named{.name = "empty"};
  const Context context = Context::background().with_cancel();
  std::error_code error;
  EXPECT_THROW(go(empty), std::invalid_argument);
  EXPECT_THROW(go(named, empty), std::invalid_argument);
  EXPECT_THROW((void)spawn(empty), std::invalid_argument);
  EXPECT_THROW((void)spawn(named, empty), std::invalid_argument);
  EXPECT_THROW((void)spawn_closing(Chan<void>(), empty), std::invalid_argument);
  EXPECT_THROW((void)after_func(1ns, empty), std::invalid_argument);
  EXPECT_THROW((void)context.after_func(empty), std::invalid_argument);

  WaitGroup group;
  EXPECT_THROW(group.go(empty), std::invalid_argument);
  EXPECT_TRUE(group.wait_for(0s));  // it counts nothing

  TaskGroup tasks;
  tasks.set_limit(1);
  EXPECT_THROW(tasks.go(empty), std::invalid_argument);
  EXPECT_THROW(tasks.go(context, empty), std::invalid_argument);
  EXPECT_THROW(tasks.go(context, empty, error), std::invalid_argument);
  EXPECT_THROW(tasks.try_go(empty), std::invalid_argument);
  EXPECT_THROW(tasks.try_go_for(1s, empty), std::invalid_argument);
  EXPECT_THROW(tasks.try_go_until(std::chrono::steady_clock::now(), empty), std::invalid_argument);
  EXPECT_TRUE(tasks.try_go([] {}));  // no place was taken
  tasks.wait();

  WorkerPool pool(1);
  EXPECT_THROW(pool.submit(empty), std::invalid_argument);
  EXPECT_THROW(pool.submit(context, empty, error), std::invalid_argument);
  EXPECT_THROW(pool.try_submit(empty), std::invalid_argument);
  EXPECT_THROW(pool.try_submit_for(1s, empty), std::invalid_argument);
  pool.wait();
}

TEST(BadInput, AnEmptyFunctionIsRefusedAtOnceWhereItWouldBeCalledLater) {
  run([] {
    expect_refused_where_called_later(std::function<void()>());
    expect_refused_where_called_later(static_cast<void (*)()>(nullptr));
    EXPECT_EQ(num_goroutines(), 1u);

    ResultGroup<int> results;
    EXPECT_THROW(results.go(std::function<int()>()), std::invalid_argument);
    EXPECT_TRUE(results.wait().empty());
    EXPECT_THROW(parallel_for(0, 3, static_cast<void (*)(int)>(nullptr)), std::invalid_argument);
    EXPECT_THROW(parallel_for(0, 0, std::function<void(int)>()), std::invalid_argument);
    EXPECT_THROW(parallel_reduce(0, 3, 0, std::function<int(int)>(), std::plus<>()),
                 std::invalid_argument);
    EXPECT_THROW(Pool<int>(1, std::function<int()>()), std::invalid_argument);
  });
}

TEST(BadInput, ANullPointerToAMemberIsRefusedToo) {
  struct Job {
    void work() {}
  };
  run([] {
    Job job;
    EXPECT_THROW(go(static_cast<void (Job::*)()>(nullptr), &job), std::invalid_argument);
    EXPECT_EQ(spawn([] { return 6 * 7; }).join(), 42);
  });
}

TEST(BadInput, ANilChannelCannotTellOfTheEndOfAGoroutine) {
  run([] { EXPECT_THROW((void)spawn_closing(Chan<void>::nil(), [] {}), std::invalid_argument); });
}

}  // namespace
}  // namespace magpie
