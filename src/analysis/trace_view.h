// trace_view.h: a trace file, opened for looking at it: at all of it at once, or at a small part
// closely.
//
// open() returns when the file's blocks are known. A thread then reads all events once and fills
// the Pyramid and the Summary; the calls below answer with what it has read so far (progress()
// tells). What is finer than a cell of the pyramid is read from the file again: each generation
// can be read alone.
//
// All calls are const and may come from several threads at once. They may read the file: goroutines
// wrap them in blocking().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "analysis/symbols.h"
#include "trace/reader.h"

namespace magpie::analysis {

struct Progress {
  std::int64_t read_until_ns = 0;
  std::uint64_t events = 0, repairs = 0;
  std::size_t procs = 0;
  bool complete = false;
};

// What a P did. What is shorter than the resolution asked for comes merged, with the sums.
struct Span {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t goroutine = 0;  // 0: several, or none
  std::uint64_t count = 0;      // goroutines that ran, each counted each time
  std::int64_t busy_ns = 0;     // a goroutine was on the P
  std::int64_t blocking_ns = 0, searching_ns = 0;
};

struct Depth {
  std::vector<std::uint32_t> rings;  // by P, longest
  std::uint32_t global_queue = 0, runnable = 0;
  double running_procs = 0;
  std::int64_t wasted_ns = 0, searching_ns = 0, oldest_ns = 0;
};

struct Arrow {
  enum class Kind : std::uint8_t { wake, create, steal };
  Kind kind = Kind::wake;
  Source source = Source::goroutine;
  std::int64_t at_ns = 0, until_ns = -1;  // until it ran; -1: not in the range
  std::int32_t from_proc = -1, to_proc = -1;
  std::uint64_t from_goroutine = 0, to_goroutine = 0;
  Place place = Place::ring;
  std::uint64_t count = 1;  // of a steal: how many moved
};
struct Arrows {
  std::uint64_t total = 0;
  std::vector<Arrow> list;  // empty when there are more than the limit
};

struct GoroutineRow {
  std::uint64_t number = 0, site = 0, caller = 0, creator = 0, runs = 0;
  std::int64_t created_ns = 0, ended_ns = -1;  // -1: lives
  std::int64_t running_ns = 0, runnable_ns = 0, waiting_ns = 0, blocking_ns = 0, stopped_ns = 0;
  State state = State::unknown;  // at the end of the trace
  std::uint8_t reason = 0;
};
struct GoroutineQuery {
  std::string text;  // in its name, its number or its site
  int state = -1;    // a State
  std::uint64_t site = 0;
  enum class Sort : std::uint8_t {
    number,
    running,
    runnable,
    waiting,
    blocking,
    stopped,
    runs,
    created
  };
  Sort sort = Sort::number;  // the largest first, except for number and created
  std::size_t offset = 0, limit = 100;
};
struct GoroutineRows {
  std::size_t total = 0;
  bool cut = false;  // there were more goroutines than the view keeps
  std::vector<GoroutineRow> rows;
};

struct Segment {
  std::int64_t begin_ns = 0, end_ns = 0;
  State state = State::unknown;
  std::int32_t proc = -1;
  std::uint8_t reason = 0;
  Place place = Place::ring;
  std::uint64_t object = 0;
  std::uint64_t woken_by = 0;  // of a segment that is runnable
};
struct GoroutineHistory {
  std::uint64_t creator = 0, site = 0;
  bool cut = false;
  std::vector<Segment> segments;
};

class TraceView {
 public:
  static std::unique_ptr<TraceView> open(const std::string& path, std::string& error);
  ~TraceView();

  const trace::Info& info() const;
  const std::vector<trace::GenerationRef>& generations() const;
  std::uint64_t lost() const;
  bool is_whole() const;  // as trace::Reader has it
  Progress progress() const;
  void wait() const;  // until all of it was read

  std::vector<std::vector<Span>> timeline(std::int64_t from_ns, std::int64_t to_ns,
                                          std::int64_t resolution_ns) const;
  std::vector<Depth> depths(std::int64_t from_ns, std::int64_t to_ns, std::size_t buckets) const;
  Arrows arrows(std::int64_t from_ns, std::int64_t to_ns, std::size_t limit) const;
  GoroutineRows goroutines(const GoroutineQuery& query) const;
  GoroutineHistory goroutine(std::uint64_t number, std::int64_t from_ns, std::int64_t to_ns,
                             std::size_t limit) const;

  // Null until progress().complete.
  std::shared_ptr<const Summary> summary() const;

  std::string name(std::uint64_t goroutine) const;    // in GoOptions; empty: none
  std::uint64_t site(std::uint64_t goroutine) const;  // pc of its code; 0 unknown
  std::string symbol(std::uint64_t pc) const;         // function and, if known, file:line

 private:
  struct Inside;
  explicit TraceView(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace magpie::analysis
