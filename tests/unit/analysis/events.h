// events.h: traces made by hand, for the tests of the room analysis.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "analysis/analyzer.h"
#include "analysis/export.h"

namespace magpie::analysis {

inline Event event(std::int64_t time_ns, std::int32_t proc, Kind kind,
                   std::initializer_list<std::uint64_t> args = {}) {
  Event made;
  made.time_ns = time_ns;
  made.proc = proc;
  made.kind = kind;
  std::copy(args.begin(), args.end(), made.args.begin());
  return made;
}

constexpr std::uint64_t number(Place place) { return static_cast<std::uint64_t>(place); }
constexpr std::uint64_t number(Source source) { return static_cast<std::uint64_t>(source); }
constexpr std::uint64_t number(trace::Why why) { return static_cast<std::uint64_t>(why); }

inline Summary analyse(const std::vector<Event>& events, std::size_t procs = 2,
                       std::int64_t end_ns = 0) {
  AnalyzerOptions options;
  options.procs = procs;
  Analyzer analyzer(options);
  for (const Event& one : events) analyzer.add(one);
  return analyzer.finish(end_ns);
}

inline ExportSource source_of(const std::vector<Event>& events, std::size_t procs) {
  ExportSource source;
  source.next = [&events, i = std::size_t{0}](Event& next) mutable {
    if (i == events.size()) return false;
    next = events[i++];
    return true;
  };
  source.string = [](std::uint64_t id) { return "string " + std::to_string(id); };
  source.symbol = [](std::uint64_t pc) {
    return Symbol{"code_" + std::to_string(pc), "/src/code.cc", static_cast<int>(pc)};
  };
  source.procs = procs;
  source.program = "by hand";
  source.pid = 42;
  return source;
}

// Two Ps. Goroutine 1 (code 100) runs on P 0, starts 2 (code 200), which P 1 steals; 2 waits at a Mutex
// until 1 readies it; both end.
inline std::vector<Event> stolen_and_blocked() {
  return {
      event(0, 0, Kind::proc_begin, {11}),
      event(0, 0, Kind::create, {1, 100, number(Place::ring)}),
      event(10, 0, Kind::run, {1, number(Place::ring)}),
      event(1000, 0, Kind::create, {2, 200, number(Place::ring)}),
      event(1100, 0, Kind::thread_wake, {1}),
      event(1600, 1, Kind::proc_begin, {12}),
      event(1600, 1, Kind::search_begin),
      event(1900, 1, Kind::steal, {0, 1, 0}),
      event(1900, 1, Kind::search_end, {1}),
      event(2000, 1, Kind::run, {2, number(Place::stolen)}),
      event(2500, 1, Kind::park, {10, 0xabc}),  // a Mutex
      event(2600, 1, Kind::search_begin),
      event(2700, 1, Kind::steal_miss, {0, 3}),
      event(2800, 1, Kind::search_end, {0}),
      event(2800, 1, Kind::proc_end),
      event(2800, -1, Kind::thread_park),
      event(5000, 0, Kind::ready, {2, number(Place::runnext), number(Source::goroutine)}),
      event(6000, 0, Kind::end),
      event(6010, 0, Kind::run, {2, number(Place::runnext)}),
      event(7010, 0, Kind::end),
      event(7020, 0, Kind::proc_end),
  };
}

}  // namespace magpie::analysis
