#include "view/trace_api.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "view/json.h"
#include "view/summary_json.h"
#include "view/words.h"

namespace magpie::view {

using namespace analysis;

namespace {

constexpr std::size_t kDepthsPerTile = 128;
constexpr std::size_t kMostArrows = 600;  // in a tile
constexpr std::size_t kMostMatching = 20'000;
constexpr std::size_t kMostSegments = 3'000;

std::unique_ptr<TraceView> open(const std::string& path) {
  std::string error;
  std::unique_ptr<TraceView> trace = TraceView::open(path, error);
  if (trace == nullptr) throw std::runtime_error(path + ": " + error);
  return trace;
}

// The number of a state in web/timeline.js: what most of the span was.
int state_of(const Span& span) {
  if (span.blocking_ns * 2 > span.busy_ns) return 1;
  if (span.busy_ns == 0 && span.searching_ns > 0) return 2;
  return 0;
}

void write_spans(JsonWriter& json, const std::vector<std::vector<Span>>& procs) {
  json.key("procs").begin_array();
  for (const std::vector<Span>& spans : procs) {
    json.begin_array();
    for (const Span& span : spans) {
      json.value(span.begin_ns).value(span.end_ns).value(span.goroutine).value(span.count);
      json.value(span.busy_ns).value(state_of(span));
    }
    json.end_array();
  }
  json.end_array();
}

template <class Value>
void write_depth(JsonWriter& json, const char* name, const std::vector<Depth>& depths,
                 Value value) {
  json.key(name).begin_array();
  for (const Depth& depth : depths) json.value(value(depth));
  json.end_array();
}

void write_arrows(JsonWriter& json, const Arrows& arrows) {
  json.key("arrows").begin_array();
  for (const Arrow& arrow : arrows.list) {
    const bool is_steal = arrow.kind == Arrow::Kind::steal;
    json.value(is_steal ? 1 : 0).value(arrow.at_ns).value(arrow.from_proc);
    json.value(arrow.from_goroutine).value(arrow.to_goroutine);
    json.value(arrow.until_ns < 0 ? arrow.at_ns : arrow.until_ns);
    json.value(arrow.to_proc).value(arrow.count);
  }
  json.end_array();
  json.member("arrows_hidden", arrows.list.empty() ? arrows.total : 0);
}

// So that the page can name and colour what it draws: names and sites, by number.
void write_people(JsonWriter& json, const TraceView& trace,
                  const std::vector<std::vector<Span>>& procs) {
  std::vector<std::uint64_t> numbers;
  for (const std::vector<Span>& spans : procs)
    for (const Span& span : spans)
      if (span.goroutine != 0) numbers.push_back(span.goroutine);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  json.key("names").begin_object();
  for (std::uint64_t number : numbers)
    if (std::string name = trace.name(number); !name.empty())
      json.member(std::to_string(number), name);
  json.end_object();
  json.key("sites").begin_object();
  for (std::uint64_t number : numbers) json.key(std::to_string(number)).address(trace.site(number));
  json.end_object();
}

void write_rings(JsonWriter& json, const std::vector<Depth>& depths, std::size_t procs) {
  json.key("rings").begin_array();
  for (std::size_t p = 0; p < procs; ++p) {
    json.begin_array();
    for (const Depth& depth : depths) json.value(p < depth.rings.size() ? depth.rings[p] : 0);
    json.end_array();
  }
  json.end_array();
}

GoroutineQuery::Sort sort_of(std::string_view key) {
  using Sort = GoroutineQuery::Sort;
  constexpr std::pair<std::string_view, Sort> kKeys[] = {
      {"running_ns", Sort::running}, {"runnable_ns", Sort::runnable},
      {"waiting_ns", Sort::waiting}, {"blocking_ns", Sort::blocking},
      {"stopped_ns", Sort::stopped}, {"runs", Sort::runs},
      {"born_ns", Sort::created},
  };
  for (const auto& [name, sort] : kKeys)
    if (name == key) return sort;
  return Sort::number;
}

void write_row(JsonWriter& json, const TraceView& trace, const GoroutineRow& row) {
  json.member("id", row.number).member("name", trace.name(row.number));
  json.member("site_text", trace.symbol(row.site)).member("creator", row.creator);
  json.member("state", text(row.state));
  json.member("reason", row.state == State::waiting ? reason_text(row.reason) : "");
  json.member("born_ns", row.created_ns).member("ended_ns", row.ended_ns).member("runs", row.runs);
  json.member("running_ns", row.running_ns).member("runnable_ns", row.runnable_ns);
  json.member("waiting_ns", row.waiting_ns).member("blocking_ns", row.blocking_ns);
  json.member("stopped_ns", row.stopped_ns);
}

}  // namespace

TraceApi::TraceApi(const std::string& path) : trace_(open(path)) {}
TraceApi::~TraceApi() = default;

std::string TraceApi::program() const { return trace_->info().program; }
std::int64_t TraceApi::pid() const { return trace_->info().pid; }

std::optional<std::string> TraceApi::answer(std::string_view topic,
                                            const TraceQuestion& question) const {
  if (topic == "info") return info();
  if (topic == "tile") return tile(question.level, question.index);
  if (topic == "goroutines") return goroutines(question);
  if (topic == "goroutine") return goroutine(question.id);
  if (topic == "summary" || topic == "waits") {
    trace_->wait();
    const std::shared_ptr<const Summary> all = trace_->summary();
    const SiteText site_text = [this](std::uint64_t pc) { return trace_->symbol(pc); };
    return topic == "summary" ? summary_json(*all, site_text) : waits_json(*all, site_text);
  }
  return std::nullopt;
}

std::string TraceApi::info() const {
  const trace::Info& info = trace_->info();
  const Progress progress = trace_->progress();
  std::uint32_t most_runnable = 1;
  for (const Depth& depth : trace_->depths(0, std::max<std::int64_t>(1, info.length_ns), 512))
    most_runnable = std::max(most_runnable, depth.runnable);
  JsonWriter json;
  json.begin_object();
  json.member("duration_ns", std::max<std::int64_t>(1, info.length_ns));
  json.member("procs", std::max<std::size_t>(1, progress.procs));
  json.member("events", progress.events).member("lost", trace_->lost());
  json.member("repairs", progress.repairs).member("complete", progress.complete);
  json.member("whole", trace_->is_whole()).member("wall_ns", info.wall_ns);
  json.member("most_runnable", most_runnable);
  json.end_object();
  return json.take();
}

std::string TraceApi::tile(std::int64_t level, std::int64_t index) const {
  level = std::clamp<std::int64_t>(level, 0, kTopLevel);
  const std::int64_t width = std::int64_t{kCellsPerTile} << level;
  const std::int64_t end_of_trace = std::max<std::int64_t>(1, trace_->info().length_ns);
  index = std::clamp<std::int64_t>(index, 0, end_of_trace / width);
  const std::int64_t begin = index * width, end = begin + width;
  // First: what is said to be complete is complete in all that follows.
  const Progress progress = trace_->progress();
  const auto spans = trace_->timeline(begin, std::min(end, end_of_trace), std::int64_t{1} << level);
  const std::vector<Depth> depths = trace_->depths(begin, end, kDepthsPerTile);
  const auto step = static_cast<double>(width) / static_cast<double>(kDepthsPerTile);
  JsonWriter json;
  json.begin_object();
  json.member("begin", begin).member("step", step);
  json.member("complete", progress.complete).member("read_until", progress.read_until_ns);
  write_spans(json, spans);
  write_people(json, *trace_, spans);
  write_depth(json, "busy", depths, [](const Depth& depth) { return depth.running_procs; });
  write_depth(json, "runnable", depths, [](const Depth& depth) { return depth.runnable; });
  write_depth(json, "global", depths, [](const Depth& depth) { return depth.global_queue; });
  write_depth(json, "oldest", depths, [](const Depth& depth) { return depth.oldest_ns; });
  write_depth(json, "wasted", depths,
              [step](const Depth& depth) { return static_cast<double>(depth.wasted_ns) / step; });
  write_rings(json, depths, spans.size());
  write_arrows(json, trace_->arrows(begin, end, kMostArrows));
  json.end_object();
  return json.take();
}

std::string TraceApi::goroutines(const TraceQuestion& question) const {
  GoroutineQuery query;
  query.text = question.text;
  query.sort = sort_of(question.sort);
  query.offset = static_cast<std::size_t>(std::max<std::int64_t>(0, question.offset));
  query.limit = static_cast<std::size_t>(std::clamp<std::int64_t>(question.limit, 1, 5'000));
  const GoroutineRows found = trace_->goroutines(query);
  JsonWriter json;
  json.begin_object();
  json.member("total", found.total).member("cut", found.cut);
  json.key("rows").begin_array();
  for (const GoroutineRow& row : found.rows) {
    json.begin_object();
    write_row(json, *trace_, row);
    json.end_object();
  }
  json.end_array();
  if (!query.text.empty()) {
    query.offset = 0;
    query.limit = kMostMatching;
    json.key("matching").begin_array();
    for (const GoroutineRow& row : trace_->goroutines(query).rows) json.value(row.number);
    json.end_array();
  }
  json.end_object();
  return json.take();
}

std::string TraceApi::goroutine(std::uint64_t id) const {
  GoroutineQuery query;
  query.text = std::to_string(id);
  GoroutineRow row;
  row.number = id;
  for (const GoroutineRow& one : trace_->goroutines(query).rows)
    if (one.number == id) row = one;
  const std::int64_t from = row.created_ns;
  const std::int64_t to = row.ended_ns < 0 ? trace_->info().length_ns : row.ended_ns + 1;
  const GoroutineHistory history = trace_->goroutine(id, from, to, kMostSegments);
  JsonWriter json;
  json.begin_object();
  write_row(json, *trace_, row);
  json.member("whole_ns", to - from).member("cut", history.cut);
  json.key("segments").begin_array();
  for (const Segment& segment : history.segments) {
    const bool waits = segment.state == State::waiting;
    json.begin_object();
    json.member("begin", segment.begin_ns).member("end", segment.end_ns);
    json.member("state", text(segment.state)).member("proc", segment.proc);
    json.member("reason", waits ? reason_text(segment.reason) : "");
    json.member("place", segment.state == State::runnable ? text(segment.place) : "");
    json.member("waker", segment.woken_by).key("object").address(waits ? segment.object : 0);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace magpie::view
