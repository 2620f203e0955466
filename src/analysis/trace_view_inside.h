// trace_view_inside.h: what a TraceView has read, and how it reads a part of the file again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/analyzer.h"
#include "analysis/pyramid.h"
#include "analysis/spans.h"
#include "analysis/trace_view.h"
#include "trace/goroutine_map.h"

namespace magpie::analysis {

struct TraceView::Inside {
  // Fixed after open().
  std::optional<trace::Reader> first_reader;  // never reads: the others are its twins
  trace::Info info;
  std::vector<trace::GenerationRef> generations;
  std::uint64_t lost = 0;
  std::unique_ptr<Symbols> symbols;  // has a lock of its own

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  // Guarded by mutex.
  Progress progress;
  Pyramid pyramid;
  std::deque<GoroutineRow> rows;
  bool rows_cut = false;
  std::unordered_map<std::uint64_t, std::string> names;
  trace::GoroutineMap<std::uint64_t> sites;  // of goroutines
  std::shared_ptr<const Summary> summary;
  bool shall_end = false;
  mutable std::vector<trace::Reader> idle_readers;

  std::optional<trace::Reader> reader;  // the thread's, until progress.complete
  std::thread thread;

  void read_all();
  bool read_batch(Analyzer& analyzer, SpanMaker& spans);
  trace::Reader take_reader() const;
  void give_reader(trace::Reader&& reader) const;
  std::uint64_t events_read_for(std::int64_t from_ns, std::int64_t to_ns) const;

  // f(states, event, steps) for each event from the begin of the generation that `from_ns` is in,
  // until `to_ns`, or until f returns false.
  template <class F>
  void scan(std::int64_t from_ns, std::int64_t to_ns, F&& f) const;
  bool is_close(std::int64_t from_ns, std::int64_t to_ns, std::int64_t resolution_ns) const;
};

template <class F>
void TraceView::Inside::scan(std::int64_t from_ns, std::int64_t to_ns, F&& f) const {
  trace::Reader source = take_reader();
  const trace::GenerationRef* first = nullptr;
  for (const trace::GenerationRef& generation : generations)
    if (first == nullptr || generation.begin_ns <= from_ns) first = &generation;
  if (first != nullptr) source.seek(*first);
  States states;
  states.set_procs(info.procs);
  Event event;
  while (source.next(event) && event.time_ns < to_ns)
    if (const States::Steps& steps = states.apply(event); !f(states, event, steps)) break;
  give_reader(std::move(source));
}

}  // namespace magpie::analysis
