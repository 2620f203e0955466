// The trace that a running program writes: every event is there, and nothing contradicts itself.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <thread>

#include "base/sanitizer.h"
#include "support/at_procs.h"
#include "support/test_length.h"
#include "trace/buffer.h"
#include "trace/reader.h"
#include "trace/recorder.h"

namespace magpie::trace {
namespace {

using namespace std::chrono_literals;

class TempFile {
 public:
  TempFile() {
    int fd = mkstemp(path_);
    EXPECT_GE(fd, 0);
    close(fd);
  }
  ~TempFile() { std::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/magpie-trace-XXXXXX";
};

// What the events add up to, in the words of stats().
struct Tally {
  std::map<std::string, std::uint64_t> sums;
  std::map<Kind, std::uint64_t> kinds;

  void add(const Event& event) {
    ++kinds[event.kind];
    switch (event.kind) {
      case Kind::create:
        if (event.proc != kOutside) ++sums["goroutines_started"];
        return;
      case Kind::end:
        ++sums["goroutines_ended"];
        return;
      case Kind::join_end:
        ++sums["goroutines_ended"];
        ++sums["joined_in_place"];
        return;
      case Kind::steal:
        ++sums["steals_tried"];
        ++sums["steals_succeeded"];
        sums["goroutines_stolen"] += event.args[1];
        sums["runnext_stolen"] += event.args[2];
        return;
      case Kind::steal_miss:
        sums["steals_tried"] += event.args[1];
        return;
      case Kind::spill:
        ++sums["overflows"];
        sums["goroutines_spilled"] += event.args[0];
        return;
      case Kind::global_take:
        ++sums["global_batches"];
        return;
      case Kind::thread_park:
        ++sums["parks"];
        return;
      case Kind::thread_wake:
        if (event.args[0] != static_cast<std::uint64_t>(event.proc)) ++sums["wakes"];
        return;
      case Kind::search_begin:
        ++sums["searches"];
        return;
      case Kind::timers:
        sums["timers_fired"] += event.args[0];
        return;
      case Kind::poll:
        ++sums["polls"];
        sums["polled"] += event.args[0];
        return;
      case Kind::taken:
        if (event.args[2] != static_cast<std::uint64_t>(Why::world_stops)) ++sums["handoffs"];
        if (event.args[2] == static_cast<std::uint64_t>(Why::used_its_slice)) ++sums["preemptions"];
        return;
      default:
        return;
    }
  }
};

// Reads the file, and checks that it is whole and that the counts of all events are those of
// stats().
Tally read_checked(const char* path) {
  Tally tally;
  std::string error;
  std::optional<Reader> reader = Reader::open(path, error);
  EXPECT_TRUE(reader.has_value()) << error;
  if (!reader) return tally;
  for (Event event; reader->next(event);) tally.add(event);
  EXPECT_TRUE(reader->info().is_whole);
  EXPECT_EQ(reader->lost(), 0u);
  EXPECT_EQ(reader->repairs(), 0u);
  EXPECT_FALSE(reader->info().totals.empty());
  for (const auto& [name, value] : reader->info().totals)
    EXPECT_EQ(tally.sums[name], value) << name;
  return tally;
}

// Something of everything: channels, joins, yields, timers, blocking calls, a full ring and loops.
void make_a_mess() {
  WaitGroup all;
  Chan<int> values(4);
  for (int i = 0; i < 600; ++i) {
    all.add(1);
    go([&, i] {
      if (i % 2 == 0) {
        values.send(i);
      } else {
        (void)values.recv();
      }
      yield();
      if (i % 50 == 0) sleep_for(1ms);
      if (i % 200 == 0) blocking([] { usleep(3000); });
      (void)spawn([i] { return i; }).join();
      all.done();
    });
  }
  for (int i = 0; i < 3; ++i) {
    all.add(1);
    go([&] {
      auto end = std::chrono::steady_clock::now() + 25ms;
      while (std::chrono::steady_clock::now() < end) {
      }
      all.done();
    });
  }
  all.wait();
}

class TraceRecorder : public support::AtProcs {};
INSTANTIATE_TEST_SUITE_P(AtProcs, TraceRecorder, support::kFewProcs,
                         testing::PrintToStringParamName());

TEST_P(TraceRecorder, WhatItCountsIsWhatStatsCounts) {
  TempFile file;
  run({.procs = procs()}, [&] {
    start(file.path());
    make_a_mess();
    EXPECT_TRUE(stop());
  });
  Tally tally = read_checked(file.path());
  EXPECT_GE(tally.kinds[Kind::create], 603u);
  EXPECT_GE(tally.kinds[Kind::park], 1u);
  EXPECT_GE(tally.kinds[Kind::spill], 1u);
}

TEST_P(TraceRecorder, CanBeginAndEndWhileEverythingRunsAndPlainThreadsWake) {
  run({.procs = procs()}, [&] {
    Chan<int> from_thread(1);
    std::thread plain([&] {
      for (int i = 0; i < 200; ++i) from_thread.send(i);
      from_thread.close();
    });
    JoinHandle<void> busy = spawn([] { make_a_mess(); });
    for (int i = 0; i < 3; ++i) {
      TempFile file;
      start(file.path());
      for (int k = 0; k < 50; ++k) (void)from_thread.recv();
      EXPECT_TRUE(stop());
      read_checked(file.path());
    }
    while (from_thread.recv()) {
    }
    busy.join();
    plain.join();
  });
}

TEST_P(TraceRecorder, OneFileHoldsTwoRuns) {
  TempFile file;
  start(file.path());
  for (int i = 0; i < 2; ++i) run({.procs = procs()}, [] { make_a_mess(); });
  EXPECT_TRUE(stop());
  Tally tally = read_checked(file.path());
  EXPECT_GE(tally.kinds[Kind::create], 2 * 604u);
}

// Records what put() writes, as if goroutine 1 had begun the trace on this P. Checks nothing.
template <class F>
void record_from(int proc, const char* path, F put) {
  constexpr Host kHost{{}, [] { return 2U; }, [](Sums&) {}, [](StateList&) {}};
  ASSERT_EQ(Recorder::prepare({.path = path, .bytes = std::size_t{1} << 20}, kHost), "");
  Start beginning;
  beginning.procs = 2;
  beginning.proc = proc;
  beginning.goroutine = 1;
  ASSERT_TRUE(Recorder::switch_on(beginning));
  Recorder::write_beginning(beginning);
  put();
  ASSERT_TRUE(Recorder::switch_off({}));
  ASSERT_EQ(Recorder::begin_to_finish(), Recorder::Finishing::by_caller);
  ASSERT_EQ(Recorder::finish(), "");
}

// The P on which a trace begins is told what runs there, and may write nothing. A later trace that
// begins on another P must not believe it.
TEST(TraceRecorderAlone, ForgetsWhereTheTraceBeforeBegan) {
  TempFile file;
  record_from(1, file.path(), [] {});
  record_from(0, file.path(), [] {
    buffer_of(1).put(ticks_now(), Kind::thread_wake, std::uint64_t{1});
    buffer_of(0).put(ticks_now(), Kind::yield, std::uint64_t{1});
    buffer_of(0).put(ticks_now(), Kind::run, std::uint64_t{1}, std::uint64_t{1});
  });
  std::string error;
  std::optional<Reader> reader = Reader::open(file.path(), error);
  ASSERT_TRUE(reader.has_value()) << error;
  for (Event event; reader->next(event);) {
    if (event.kind == Kind::state) {
      EXPECT_EQ(event.proc, 0);
    }
  }
  EXPECT_EQ(reader->repairs(), 0u);
}

TEST_P(TraceRecorder, ASnapshotOfTheFlightRecorderCanBeTakenWhileEverythingRuns) {
  TempFile file;
  run({.procs = procs()}, [&] {
    start("", {.flight = true, .bytes = std::size_t{1} << 20});
    JoinHandle<void> busy = spawn([] { make_a_mess(); });
    for (int i = 0; i < 5; ++i) {
      yield();
      snapshot(file.path());
      std::string error;
      std::optional<Reader> reader = Reader::open(file.path(), error);
      ASSERT_TRUE(reader.has_value()) << error;
      std::uint64_t count = 0;
      for (Event event; reader->next(event);) ++count;
      EXPECT_GE(count, 1u);
      EXPECT_TRUE(reader->info().is_whole);
    }
    busy.join();
    EXPECT_TRUE(stop());
  });
}

TEST(TraceFlight, KeepsTheLastEventsOnly) {
  constexpr int kLogs = 5000;
  TempFile file;
  run({.procs = 1}, [&] {
    start("", {.flight = true, .bytes = 1});  // as little as it can do with
    for (int i = 0; i < kLogs; ++i) log(std::string(900, 'x'), std::to_string(i));
    snapshot(file.path());
    EXPECT_TRUE(stop());
  });
  std::string error;
  std::optional<Reader> reader = Reader::open(file.path(), error);
  ASSERT_TRUE(reader.has_value()) << error;
  int last = -1;
  std::uint64_t count = 0;
  for (Event event; reader->next(event);) {
    if (event.kind != Kind::log) continue;
    int now = std::stoi(std::string(reader->string(event.args[1])));
    if (last >= 0) {
      ASSERT_EQ(now, last + 1);
    }
    last = now;
    ++count;
  }
  EXPECT_EQ(last, kLogs - 1);
  EXPECT_LT(count, static_cast<std::uint64_t>(kLogs));
}

TEST(TraceFlight, ASignalWritesASnapshot) {
  TempFile file;
  run([&] {
    start(file.path(), {.flight = true, .signal = SIGUSR2});
    log("before", "the signal");
    kill(getpid(), SIGUSR2);
    std::string error;
    for (;;) {
      std::optional<Reader> reader = Reader::open(file.path(), error);
      if (reader && reader->info().is_whole) break;
      yield();
    }
    EXPECT_TRUE(stop());
  });
}

TEST(TraceFlight, ACrashWritesWhatWasRecorded) {
  TempFile file;
  pid_t child = fork();
  if (child == 0) {
    run([&] {
      start(file.path(), {.flight = true});
      log("the last", "words");
      std::abort();
    });
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  std::string error;
  std::optional<Reader> reader = Reader::open(file.path(), error);
  ASSERT_TRUE(reader.has_value()) << error;
  bool found = false;
  for (Event event; reader->next(event);)
    found = found || (event.kind == Kind::log && reader->string(event.args[1]) == "words");
  EXPECT_TRUE(found);
}

TEST(TraceFile, AFullDiskLosesEventsAndSaysHowMany) {
  TempFile file;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  run([&] {
    rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    start(file.path());
    for (int i = 0; i < 2000; ++i) log("much", std::string(500, 'x'));
    EXPECT_THROW((void)stop(), std::runtime_error);
    EXPECT_FALSE(stop());
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  std::string error;
  std::optional<Reader> reader = Reader::open(file.path(), error);
  ASSERT_TRUE(reader.has_value()) << error;
  std::uint64_t logs = 0;
  for (Event event; reader->next(event);) logs += event.kind == Kind::log ? 1 : 0;
  EXPECT_LT(logs, 2000u);
  EXPECT_GE(logs, 1u);
  if (reader->info().is_whole) {  // its end still had room
    EXPECT_GE(logs + reader->lost(), 2000u);
  }
}

TEST(TraceFile, TheChildOfAForkRecordsNothing) {
#ifdef MAGPIE_TSAN
  GTEST_SKIP() << "ThreadSanitizer allows no threads in the child of a fork()";
#endif
  TempFile file;
  run([&] {
    start(file.path());
    blocking([] {
      pid_t child = fork();
      if (child == 0) {
        log("in", "the child");
        run([] { make_a_mess(); });
        _exit(stop() ? 1 : 0);
      }
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    });
    EXPECT_TRUE(stop());
  });
  read_checked(file.path());
}

TEST(TraceFile, KnowsNamesRegionsTasksAndWhereCodeIsMapped) {
  TempFile file;
  run([&] {
    start(file.path());
    spawn(GoOptions{.name = "worker"}, [] {
      Task whole("request");
      Task part("query", whole);
      Region region("parse");
    }).join();
    EXPECT_TRUE(stop());
  });
  std::string error;
  std::optional<Reader> reader = Reader::open(file.path(), error);
  ASSERT_TRUE(reader.has_value()) << error;
  std::map<Kind, std::string> texts;
  std::uint64_t parent = 0, whole = 0, body = 0;
  for (Event event; reader->next(event);) {
    if (event.kind == Kind::name) texts[event.kind] = reader->string(event.args[1]);
    if (event.kind == Kind::region_begin) texts[event.kind] = reader->string(event.args[0]);
    if (event.kind == Kind::create) body = event.args[1];
    if (event.kind != Kind::task_begin) continue;
    (event.args[1] == 0 ? whole : parent) = event.args[event.args[1] == 0 ? 0 : 1];
  }
  EXPECT_EQ(texts[Kind::name], "worker");
  EXPECT_EQ(texts[Kind::region_begin], "parse");
  EXPECT_EQ(parent, whole);
  bool mapped = false;
  for (const Module& module : reader->modules())
    mapped = mapped || (module.start <= body && body < module.end && !module.path.empty());
  EXPECT_TRUE(mapped);
}

TEST(TraceFile, BeginsAndEndsWhileRunsBeginAndEnd) {
  TempFile file;
  std::atomic<bool> is_over{false};
  auto trace_again = [&] {
    while (!is_over) {
      try {
        start(file.path(), {.bytes = std::size_t{1} << 20});
      } catch (const std::logic_error&) {  // the other thread records
      }
      (void)stop();
    }
  };
  std::thread one(trace_again), other(trace_again);
  for (int i = 0; i < std::max(10, support::scaled(100)); ++i) {
    run({.procs = 4}, [] {
      WaitGroup all;
      for (int k = 0; k < 100; ++k) {
        all.add(1);
        go([&] {
          yield();
          all.done();
        });
      }
      all.wait();
    });
  }
  is_over = true;
  one.join();
  other.join();
  EXPECT_FALSE(stop());
}

TEST(TraceFile, TheChildOfAForkHasItsOwnHandlerOfTheSnapshotSignal) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer keeps the signal from the child's handler";
#endif
  static volatile sig_atomic_t is_called = 0;
  struct sigaction mine = {}, before;
  mine.sa_handler = [](int) { is_called = 1; };
  sigaction(SIGUSR1, &mine, &before);
  start("", {.flight = true, .signal = SIGUSR1});
  pid_t child = fork();
  if (child == 0) {
    raise(SIGUSR1);
    _exit(is_called == 1 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(stop());
  sigaction(SIGUSR1, &before, nullptr);
}

TEST(TraceFile, AReaderKeepsTheOldTraceWhenTheFileIsWrittenAnew) {
  TempFile file;
  auto record = [&] {
    run([&] {
      start(file.path());
      make_a_mess();
      stop();
    });
  };
  record();
  std::string error;
  std::optional<Reader> reader = Reader::open(file.path(), error);
  ASSERT_TRUE(reader.has_value()) << error;
  run([&] {  // a short one
    start(file.path());
    stop();
  });
  std::size_t events = 0;
  for (Event event; reader->next(event);) ++events;
  EXPECT_GT(events, 1000u);
  EXPECT_TRUE(reader->info().is_whole);
}

TEST(TraceFile, SecondTracesAndMissingRecordersAreRefused) {
  TempFile file;
  run([&] {
    EXPECT_FALSE(stop());
    EXPECT_THROW(snapshot(file.path()), std::logic_error);
    EXPECT_THROW(start("/there/is/no/such/folder/file"), std::runtime_error);
    start(file.path());
    EXPECT_THROW(start(file.path()), std::logic_error);
    EXPECT_THROW(snapshot(file.path()), std::logic_error);
    EXPECT_TRUE(stop());
  });
}

}  // namespace
}  // namespace magpie::trace
