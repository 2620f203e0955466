// trace_view_reading.cc: the thread that reads a trace once, and readers for parts of it.
#include <algorithm>
#include <mutex>
#include <optional>

#include "analysis/trace_view_inside.h"

namespace magpie::analysis {

namespace {

constexpr std::size_t kEventsPerBatch = 8192;          // events read while the lock is held
constexpr std::size_t kMostRows = 2'000'000;           // goroutines that the list keeps
constexpr std::uint64_t kMostEventsClose = 1'500'000;  // more are not read again for one answer

void add_row(std::deque<GoroutineRow>& rows, const Goroutine& g, const Parts& parts,
             std::uint64_t runs) {
  GoroutineRow row;
  row.number = g.number;
  row.site = g.site;
  row.caller = g.caller;
  row.creator = g.creator;
  row.runs = runs;
  row.created_ns = g.born_ns;
  row.ended_ns = g.state == State::ended ? g.since_ns : -1;
  row.running_ns = parts[Part::running] + parts[Part::without_p];
  row.waiting_ns = parts[Part::blocked];
  row.blocking_ns = parts[Part::blocking_call];
  row.stopped_ns = parts[Part::stopped];
  row.runnable_ns = parts.sum() - row.running_ns - row.waiting_ns - row.blocking_ns -
                    row.stopped_ns - parts[Part::unknown];
  row.state = g.state;
  row.reason = g.reason;
  rows.push_back(row);
}

}  // namespace

bool TraceView::Inside::read_batch(Analyzer& analyzer, SpanMaker& spans) {
  std::vector<Event> batch;
  batch.reserve(kEventsPerBatch);
  Event event;
  while (batch.size() < kEventsPerBatch && reader->next(event)) batch.push_back(event);
  std::lock_guard lock(mutex);
  auto to_pyramid = [this](auto... span) { pyramid.span(span...); };
  for (const Event& e : batch) {
    analyzer.add(e);
    pyramid.event(e, analyzer.work().runnable(), analyzer.work().wasted_ns());
    if (e.kind == Kind::run) pyramid.oldest(e.time_ns, analyzer.last_queued_ns());
    if (e.kind == Kind::name && names.size() < kMostRows)
      names[e.args[0]] = std::string(reader->string(e.args[1]));
    if (e.args[0] != 0 && sites.size() < kMostRows) {
      if (e.kind == Kind::create) sites.need(e.args[0]) = e.args[1];
      if (e.kind == Kind::state) sites.need(e.args[0]) = e.args[4];
    }
    spans.note(analyzer.states(), e, to_pyramid);
  }
  if (!batch.empty()) progress.read_until_ns = batch.back().time_ns;
  progress.events += batch.size();
  progress.repairs = reader->repairs();
  progress.procs = std::max(progress.procs, analyzer.states().procs().size());
  return batch.size() == kEventsPerBatch && !shall_end;
}

void TraceView::Inside::read_all() {
  AnalyzerOptions options;
  options.procs = info.procs;
  options.string = [this](std::uint64_t id) { return reader->string(id); };
  options.on_life = [this](const Goroutine& g, const Parts& parts, std::uint64_t runs) {
    if (rows.size() < kMostRows)
      add_row(rows, g, parts, runs);
    else
      rows_cut = true;
  };
  Analyzer analyzer(options);
  SpanMaker spans;
  while (read_batch(analyzer, spans)) {
  }
  std::lock_guard lock(mutex);
  spans.finish(progress.read_until_ns, [this](auto... span) { pyramid.span(span...); });
  summary = std::make_shared<Summary>(analyzer.finish(info.length_ns));
  progress.complete = true;
  reader.reset();
  changed.notify_all();
}

trace::Reader TraceView::Inside::take_reader() const {
  {
    std::lock_guard lock(mutex);
    if (!idle_readers.empty()) {
      trace::Reader taken(std::move(idle_readers.back()));
      idle_readers.pop_back();
      return taken;
    }
  }
  return first_reader->twin();
}

void TraceView::Inside::give_reader(trace::Reader&& given) const {
  std::lock_guard lock(mutex);
  if (idle_readers.size() < 4) idle_readers.push_back(std::move(given));
}

// About how many events scan() would read.
std::uint64_t TraceView::Inside::events_read_for(std::int64_t from_ns, std::int64_t to_ns) const {
  constexpr double kBytesPerEvent = 6;
  double events = 0;
  for (const trace::GenerationRef& generation : generations) {
    if (generation.end_ns <= from_ns || generation.begin_ns >= to_ns) continue;
    const auto length = static_cast<double>(generation.end_ns - generation.begin_ns);
    const auto read = static_cast<double>(std::min(to_ns, generation.end_ns) - generation.begin_ns);
    events += static_cast<double>(generation.event_bytes) / kBytesPerEvent *
              (length > 0 ? read / length : 1);
  }
  return static_cast<std::uint64_t>(events);
}

// Whether the range shall be read from the file again.
bool TraceView::Inside::is_close(std::int64_t from_ns, std::int64_t to_ns,
                                 std::int64_t resolution_ns) const {
  {
    std::lock_guard lock(mutex);
    if (resolution_ns >= pyramid.width_ns()) return false;
  }
  return events_read_for(from_ns, to_ns) <= kMostEventsClose;
}

}  // namespace magpie::analysis
