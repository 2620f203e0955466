// trace_view_test.cc: a view of a file: what it shows of all at once equals what it shows closely.

#include "analysis/trace_view.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "analysis/pyramid.h"
#include "trace/file_builder.h"
#include "unit/analysis/events.h"

namespace magpie::analysis {
namespace {

class TemporaryTrace {
 public:
  explicit TemporaryTrace(const std::string& bytes) {
    close(mkstemp(path_));
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryTrace() { unlink(path_); }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/magpie-view-XXXXXX";
};

// P 0 runs goroutines of 800 ns, one each microsecond; each readies the next. Every 1000 a new
// generation.
std::string one_each_microsecond(std::uint64_t count) {
  trace::FileBuilder file({.procs = 2});
  file.put(0, 0, Kind::proc_begin, {1});
  file.put(0, 0, Kind::create, {1, 100, 1});
  for (std::uint64_t g = 1; g <= count; ++g) {
    const auto now = static_cast<std::int64_t>(g) * 1000;
    if (g % 1000 == 0) file.next_generation(now - 100);
    file.put(0, now, Kind::run, {g, 1});
    file.put(0, now + 500, Kind::create, {g + 1, 100 + g % 2, 1});
    file.put(0, now + 800, Kind::end);
  }
  return file.finish();
}

std::unique_ptr<TraceView> view_of(const TemporaryTrace& file) {
  std::string error;
  std::unique_ptr<TraceView> view = TraceView::open(file.path(), error);
  EXPECT_NE(view, nullptr) << error;
  view->wait();
  return view;
}

std::int64_t busy(const std::vector<Span>& spans) {
  std::int64_t sum = 0;
  for (const Span& span : spans) sum += span.busy_ns;
  return sum;
}

TEST(TraceView, CloseAndFarViewsShowTheSameBusyTime) {
  const TemporaryTrace file(one_each_microsecond(5000));
  const auto view = view_of(file);
  EXPECT_TRUE(view->progress().complete);
  const std::int64_t whole = 5'000'000 + 1024 * 1000;
  const auto far = view->timeline(0, whole, 1 << 20);
  ASSERT_EQ(far.size(), 2u);
  EXPECT_EQ(busy(far[0]), 5000 * 800);
  EXPECT_LE(far[0].size(), 7u);
  EXPECT_EQ(busy(view->timeline(0, whole, 1)[0]), 5000 * 800);
}

// More than 32 bits have nanoseconds for.
TEST(TraceView, HoursOfWorkInOneSpanAreAllCounted) {
  constexpr std::int64_t kHours = 3LL * 3600 * 1'000'000'000;
  trace::FileBuilder builder({.procs = 1});
  builder.put(0, 0, Kind::proc_begin, {1});
  builder.put(0, 0, Kind::create, {1, 100, 1});
  builder.put(0, 0, Kind::run, {1, 1});
  builder.put(0, kHours, Kind::end);
  const TemporaryTrace file(builder.finish());
  const auto view = view_of(file);
  EXPECT_EQ(busy(view->timeline(0, kHours, kHours)[0]), kHours);
  EXPECT_NEAR(view->depths(0, kHours, 1)[0].running_procs, 1, 0.01);
}

TEST(TraceView, AClosedViewHasEachGoroutineWithItsTimes) {
  const TemporaryTrace file(one_each_microsecond(5000));
  const auto view = view_of(file);
  // In the fourth generation, which is read alone.
  const auto spans = view->timeline(3'500'000, 3'510'000, 1).at(0);
  ASSERT_EQ(spans.size(), 10u);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].goroutine, 3500 + i);
    EXPECT_NEAR(static_cast<double>(spans[i].begin_ns),
                3'500'000.0 + 1000.0 * static_cast<double>(i), 2);
    EXPECT_NEAR(static_cast<double>(spans[i].busy_ns), 800, 2);
  }
}

TEST(TraceView, WhatIsShorterThanTheResolutionIsMerged) {
  const TemporaryTrace file(one_each_microsecond(2000));
  const auto view = view_of(file);
  const auto spans = view->timeline(1'000'000, 1'100'000, 10'000).at(0);
  EXPECT_LE(spans.size(), 11u);
  std::uint64_t count = 0;
  for (const Span& span : spans) count += span.count;
  EXPECT_GE(count, 100u);
  EXPECT_LE(count, 120u);  // rounded out to whole cells
}

TEST(TraceView, ArrowsLeadFromTheWakerToTheRun) {
  const TemporaryTrace file(one_each_microsecond(3000));
  const auto view = view_of(file);
  const Arrows arrows = view->arrows(2'000'000, 2'010'000, 100);
  ASSERT_EQ(arrows.total, 10u);
  ASSERT_EQ(arrows.list.size(), 10u);
  EXPECT_EQ(arrows.list[0].kind, Arrow::Kind::create);
  EXPECT_EQ(arrows.list[0].from_goroutine, 2000u);
  EXPECT_EQ(arrows.list[0].to_goroutine, 2001u);
  EXPECT_NEAR(static_cast<double>(arrows.list[0].until_ns - arrows.list[0].at_ns), 500, 2);
  EXPECT_TRUE(view->arrows(2'000'000, 2'010'000, 5).list.empty());  // more than the limit
}

TEST(TraceView, GoroutinesAreFilteredSortedAndPaged) {
  const TemporaryTrace file(one_each_microsecond(1000));
  const auto view = view_of(file);
  GoroutineQuery query;
  query.site = 101;
  query.limit = 3;
  query.offset = 1;
  const GoroutineRows rows = view->goroutines(query);
  EXPECT_EQ(rows.total, 500u);
  ASSERT_EQ(rows.rows.size(), 3u);
  EXPECT_EQ(rows.rows[0].number, 4u);
  EXPECT_NEAR(static_cast<double>(rows.rows[0].running_ns), 800, 2);
  EXPECT_EQ(view->site(4), 101u);
  query = {};
  query.text = "17";
  EXPECT_EQ(view->goroutines(query).rows.at(0).number, 17u);
}

TEST(TraceView, AGoroutinesHistoryHasItsSegments) {
  const TemporaryTrace file(one_each_microsecond(100));
  const auto view = view_of(file);
  const GoroutineHistory history = view->goroutine(50, 0, 200'000, 100);
  ASSERT_EQ(history.segments.size(), 2u);
  EXPECT_EQ(history.segments[0].state, State::runnable);
  EXPECT_EQ(history.segments[1].state, State::running);
  EXPECT_EQ(history.creator, 49u);
}

// In a damaged trace, or in one of two runs, a goroutine may have lived before it was started.
TEST(TraceView, WhatAGoroutineDidBeforeTheRangeIsLeftOut) {
  const TemporaryTrace file(one_each_microsecond(100));
  const auto view = view_of(file);
  const GoroutineHistory history = view->goroutine(50, 50'400, 200'000, 100);
  ASSERT_EQ(history.segments.size(), 1u);
  EXPECT_EQ(history.segments[0].state, State::running);
}

TEST(TraceView, DepthsAndSummaryAreOfTheWholeTrace) {
  const TemporaryTrace file(one_each_microsecond(5000));
  const auto view = view_of(file);
  const std::vector<Depth> depths = view->depths(0, 5'000'000, 10);
  ASSERT_EQ(depths.size(), 10u);
  EXPECT_NEAR(depths[5].running_procs, 0.8, 0.05);
  EXPECT_GE(depths[5].runnable, 1u);
  ASSERT_NE(view->summary(), nullptr);
  EXPECT_EQ(view->summary()->goroutines_ended, 5000u);
}

TEST(TraceView, AFileThatIsNoTraceIsRefusedInOneSentence) {
  const TemporaryTrace file("this is no trace, and longer than a header");
  std::string error;
  EXPECT_EQ(TraceView::open(file.path(), error), nullptr);
  EXPECT_FALSE(error.empty());
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

TEST(Pyramid, DoublingTheWidthKeepsTheSums) {
  Pyramid pyramid(64);
  for (std::int64_t i = 0; i < 10'000; ++i)
    pyramid.span(0, Pyramid::What::running, static_cast<std::uint64_t>(i + 1), i * 1000,
                 i * 1000 + 700);
  EXPECT_LE(10'000 * 1000 / pyramid.width_ns(), 64);
  const Pyramid::ProcCell all = pyramid.sum(0, 0, 10'000 * 1000);
  EXPECT_EQ(all.busy_ns, 7'000'000u);
  EXPECT_EQ(all.runs, 10'000u);
  EXPECT_EQ(all.goroutine, 0u);
}

}  // namespace
}  // namespace magpie::analysis
