// replay_test.cc: a recorded program runs again in the simulation.

#include "lab/replay.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "trace/file_builder.h"

namespace magpie::lab {
namespace {

using trace::Kind;

constexpr std::uint64_t kRing = static_cast<std::uint64_t>(trace::Place::ring);
constexpr std::uint64_t kByGoroutine = static_cast<std::uint64_t>(trace::Source::goroutine);
constexpr std::uint64_t kByTimer = static_cast<std::uint64_t>(trace::Source::timer);

trace::Reader read(trace::FileBuilder& file) {
  std::string error;
  std::optional<trace::Reader> reader = trace::Reader::from_bytes(file.finish(), error);
  EXPECT_TRUE(reader) << error;
  return std::move(*reader);
}

// Goroutine 1 starts 100 others within 100 us on one P. Then each computes for 10 us.
trace::FileBuilder one_after_the_other() {
  trace::FileBuilder file({.procs = 1});
  file.put(0, 0, Kind::proc_begin, {11, 0});
  file.put(0, 0, Kind::create, {1, 100, kRing, 0});
  file.put(0, 1'000, Kind::run, {1, kRing});
  for (std::uint64_t g = 2; g < 102; ++g)
    file.put(0, static_cast<std::int64_t>(g) * 1'000, Kind::create, {g, 200, kRing, 0});
  file.put(0, 102'000, Kind::end);
  for (std::uint64_t g = 2; g < 102; ++g) {
    const auto begin = static_cast<std::int64_t>(102 + (g - 2) * 10) * 1'000;
    file.put(0, begin, Kind::run, {g, kRing});
    file.put(0, begin + 10'000, Kind::end);
  }
  return file;
}

Result again(const Recording& recording, std::uint32_t procs) {
  lab::Setup setup;
  setup.procs = procs;
  return replay(recording, setup);
}

TEST(Replay, TakesAsLongAsTheTraceOnAsManyPs) {
  trace::FileBuilder file = one_after_the_other();
  trace::Reader reader = read(file);
  const Recording recording = record(reader);
  EXPECT_EQ(recording.procs(), 1u);
  EXPECT_EQ(recording.goroutines(), 101u);
  const Result result = again(recording, 1);
  EXPECT_EQ(result.ended, 101u);
  EXPECT_EQ(result.computing, 1'101'000);
  const auto measured = static_cast<double>(recording.latency().quantile(0.99));
  EXPECT_NEAR(static_cast<double>(result.latency.quantile(0.99)) / measured, 1, 0.05);
}

TEST(Replay, SaysThatMorePsWouldHaveServedFaster) {
  trace::FileBuilder file = one_after_the_other();
  trace::Reader reader = read(file);
  const Recording recording = record(reader);
  const Result one = again(recording, 1), four = again(recording, 4);
  EXPECT_EQ(four.ended, 101u);
  EXPECT_LT(2 * four.latency.quantile(0.99), one.latency.quantile(0.99));
}

TEST(Replay, GoroutinesWaitAndAreWokenAsInTheTrace) {
  trace::FileBuilder file({.procs = 1});
  file.put(0, 0, Kind::proc_begin, {11, 0});
  file.put(0, 0, Kind::create, {1, 100, kRing, 0});
  file.put(0, 1'000, Kind::run, {1, kRing});
  file.put(0, 2'000, Kind::create, {2, 200, kRing, 0});
  file.put(0, 3'000, Kind::park, {1, 0x1000});
  file.put(0, 3'100, Kind::run, {2, kRing});
  file.put(0, 5'000, Kind::ready, {1, kRing, kByGoroutine});
  file.put(0, 6'000, Kind::park, {1, 0x2000});
  file.put(0, 6'100, Kind::run, {1, kRing});
  file.put(0, 7'000, Kind::end);
  file.put(0, 106'000, Kind::ready, {2, kRing, kByTimer});
  file.put(0, 106'100, Kind::run, {2, kRing});
  file.put(0, 107'000, Kind::end);
  trace::Reader reader = read(file);
  const Recording recording = record(reader);
  const Result result = again(recording, 1);
  EXPECT_EQ(result.ended, 2u);
  EXPECT_EQ(result.computing, 2'000 + 2'900 + 900 + 900);
  EXPECT_GT(result.time, 100'000);  // the timer lasts as long as it did
  EXPECT_LT(result.time, 140'000);
}

}  // namespace
}  // namespace magpie::lab
