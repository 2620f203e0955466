// trace_view.cc: the answers. What they are made from is read in trace_view_reading.cc.
#include "analysis/trace_view.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "analysis/trace_view_inside.h"
#include "trace/goroutine_map.h"

namespace magpie::analysis {

namespace {

std::int64_t key_of(const GoroutineRow& row, GoroutineQuery::Sort sort) {
  using Sort = GoroutineQuery::Sort;
  switch (sort) {
    case Sort::number:
      return -static_cast<std::int64_t>(row.number);
    case Sort::created:
      return -row.created_ns;
    case Sort::running:
      return row.running_ns;
    case Sort::runnable:
      return row.runnable_ns;
    case Sort::waiting:
      return row.waiting_ns;
    case Sort::blocking:
      return row.blocking_ns;
    case Sort::stopped:
      return row.stopped_ns;
    case Sort::runs:
      return static_cast<std::int64_t>(row.runs);
  }
  return 0;
}

// Puts spans of one P into a list, those shorter than the resolution merged.
class SpanList {
 public:
  SpanList(std::int64_t from_ns, std::int64_t to_ns, std::int64_t resolution_ns)
      : from_ns_(from_ns), to_ns_(to_ns), resolution_ns_(resolution_ns) {}

  void add(Span span) {
    span.begin_ns = std::max(span.begin_ns, from_ns_);
    span.end_ns = std::min(span.end_ns, to_ns_);
    if (span.end_ns < span.begin_ns) return;
    if (!list.empty() && cell(list.back().begin_ns) == cell(span.end_ns) &&
        cell(span.begin_ns) == cell(span.end_ns)) {
      merge(list.back(), span);
    } else {
      list.push_back(span);
    }
  }

  static void merge(Span& into, const Span& span) {
    if (into.goroutine != span.goroutine) into.goroutine = 0;
    into.end_ns = std::max(into.end_ns, span.end_ns);
    into.count += span.count;
    into.busy_ns += span.busy_ns;
    into.blocking_ns += span.blocking_ns;
    into.searching_ns += span.searching_ns;
  }

  std::vector<Span> list;

 private:
  std::int64_t cell(std::int64_t at_ns) const { return (at_ns - from_ns_) / resolution_ns_; }
  std::int64_t from_ns_, to_ns_, resolution_ns_;
};

}  // namespace

TraceView::TraceView(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

TraceView::~TraceView() {
  {
    std::lock_guard lock(inside_->mutex);
    inside_->shall_end = true;
  }
  if (inside_->thread.joinable()) inside_->thread.join();
}

std::unique_ptr<TraceView> TraceView::open(const std::string& path, std::string& error) {
  std::optional<trace::Reader> reader = trace::Reader::open(path, error);
  if (!reader) return nullptr;
  auto inside = std::make_unique<Inside>();
  inside->info = reader->info();
  inside->generations = reader->generations();
  inside->lost = reader->lost();
  inside->symbols = Symbols::make(reader->modules());
  inside->progress.procs = inside->info.procs;
  inside->reader = reader->twin();
  inside->first_reader = std::move(reader);
  Inside* raw = inside.get();
  inside->thread = std::thread([raw] { raw->read_all(); });
  return std::unique_ptr<TraceView>(new TraceView(std::move(inside)));
}

const trace::Info& TraceView::info() const { return inside_->info; }
const std::vector<trace::GenerationRef>& TraceView::generations() const {
  return inside_->generations;
}
std::uint64_t TraceView::lost() const { return inside_->lost; }
bool TraceView::is_whole() const { return inside_->first_reader->is_whole(); }

Progress TraceView::progress() const {
  std::lock_guard lock(inside_->mutex);
  return inside_->progress;
}

void TraceView::wait() const {
  std::unique_lock lock(inside_->mutex);
  inside_->changed.wait(lock, [this] { return inside_->progress.complete; });
}

std::shared_ptr<const Summary> TraceView::summary() const {
  std::lock_guard lock(inside_->mutex);
  return inside_->summary;
}

std::string TraceView::symbol(std::uint64_t pc) const { return inside_->symbols->text(pc); }

std::vector<std::vector<Span>> TraceView::timeline(std::int64_t from_ns, std::int64_t to_ns,
                                                   std::int64_t resolution_ns) const {
  const Inside& in = *inside_;
  resolution_ns = std::max<std::int64_t>(resolution_ns, 1);
  std::vector<SpanList> lists;
  auto list = [&](std::size_t proc) -> SpanList& {
    while (lists.size() <= proc) lists.emplace_back(from_ns, to_ns, resolution_ns);
    return lists[proc];
  };
  if (in.is_close(from_ns, to_ns, resolution_ns)) {
    SpanMaker maker;
    auto add = [&](std::size_t proc, Pyramid::What what, std::uint64_t goroutine,
                   std::int64_t begin_ns, std::int64_t end_ns) {
      if (end_ns < from_ns) return;
      const std::int64_t spent = std::min(end_ns, to_ns) - std::max(begin_ns, from_ns);
      Span span{begin_ns, end_ns, goroutine, goroutine != 0};
      (what == Pyramid::What::searching ? span.searching_ns : span.busy_ns) = spent;
      if (what == Pyramid::What::blocking) span.blocking_ns = spent;
      list(proc).add(span);
    };
    in.scan(from_ns, to_ns, [&](const States& states, const Event& event, const States::Steps&) {
      maker.note(states, event, add);
      return true;
    });
    maker.finish(to_ns, add);
  } else {
    std::lock_guard lock(in.mutex);
    const std::int64_t width = in.pyramid.width_ns();
    resolution_ns = (resolution_ns + width - 1) / width * width;  // of whole cells
    const std::int64_t first = from_ns / resolution_ns * resolution_ns;
    for (std::size_t proc = 0; proc < in.pyramid.procs(); ++proc) {
      for (std::int64_t at = first; at < to_ns; at += resolution_ns) {
        const Pyramid::ProcCell cell = in.pyramid.sum(proc, at, at + resolution_ns);
        if (cell.busy_ns == 0 && cell.searching_ns == 0 && cell.runs == 0) continue;
        list(proc).list.push_back({at, at + resolution_ns, cell.goroutine, cell.runs, cell.busy_ns,
                                   cell.blocking_ns, cell.searching_ns});
      }
    }
  }
  std::vector<std::vector<Span>> result(std::max(lists.size(), progress().procs));
  for (std::size_t i = 0; i < lists.size(); ++i) result[i] = std::move(lists[i].list);
  return result;
}

std::vector<Depth> TraceView::depths(std::int64_t from_ns, std::int64_t to_ns,
                                     std::size_t buckets) const {
  const Inside& in = *inside_;
  std::vector<Depth> result(std::min<std::size_t>(buckets, 100'000));
  if (result.empty() || to_ns <= from_ns) return result;
  std::lock_guard lock(in.mutex);
  const double width = static_cast<double>(to_ns - from_ns) / static_cast<double>(result.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t begin = from_ns + static_cast<std::int64_t>(width * static_cast<double>(i));
    const std::int64_t end = std::max(
        begin + 1, from_ns + static_cast<std::int64_t>(width * static_cast<double>(i + 1)));
    Depth& depth = result[i];
    const Pyramid::Cell cell = in.pyramid.sum(begin, end);
    depth.global_queue = cell.global_queue;
    depth.runnable = cell.runnable;
    depth.oldest_ns = cell.oldest_ns;
    // Cells may be wider than the bucket: the sums are scaled to it.
    const std::int64_t cell_ns = in.pyramid.width_ns();
    const std::int64_t covered = ((end - 1) / cell_ns - begin / cell_ns + 1) * cell_ns;
    const double share = static_cast<double>(end - begin) / static_cast<double>(covered);
    depth.wasted_ns = static_cast<std::int64_t>(share * static_cast<double>(cell.wasted_ns));
    double busy = 0, searching = 0;
    for (std::size_t proc = 0; proc < in.pyramid.procs(); ++proc) {
      const Pyramid::ProcCell of_proc = in.pyramid.sum(proc, begin, end);
      depth.rings.push_back(of_proc.ring);
      busy += of_proc.busy_ns;
      searching += of_proc.searching_ns;
    }
    if (cell.events == 0 && i > 0) {  // nothing changed
      depth.runnable = result[i - 1].runnable;
      depth.global_queue = result[i - 1].global_queue;
      depth.rings = result[i - 1].rings;
    }
    depth.running_procs = busy / static_cast<double>(covered);
    depth.searching_ns = static_cast<std::int64_t>(share * searching);
  }
  return result;
}

Arrows TraceView::arrows(std::int64_t from_ns, std::int64_t to_ns, std::size_t limit) const {
  const Inside& in = *inside_;
  Arrows result;
  {
    std::lock_guard lock(in.mutex);
    result.total = in.pyramid.sum(from_ns, to_ns).arrows;
  }
  if (!in.is_close(from_ns, to_ns, 0)) return result;
  result.total = 0;
  std::unordered_map<std::uint64_t, std::size_t> open;  // goroutine to its arrow
  std::vector<std::size_t> open_steals;                 // by P, from 1
  // A goroutine that is woken near the end runs a little later.
  const std::int64_t until_ns = to_ns + std::max<std::int64_t>((to_ns - from_ns) / 4, 1'000'000);
  in.scan(from_ns, until_ns, [&](const States& states, const Event& e, const States::Steps&) {
    if (e.kind == Kind::run) {
      if (auto found = open.find(e.args[0]); found != open.end()) {
        result.list[found->second].until_ns = e.time_ns;
        result.list[found->second].to_proc = e.proc;
        open.erase(found);
      }
      const auto proc = static_cast<std::size_t>(e.proc);
      if (e.proc >= 0 && proc < open_steals.size() && open_steals[proc] != 0 &&
          e.args[1] == static_cast<std::uint64_t>(Place::stolen)) {
        Arrow& steal = result.list[open_steals[proc] - 1];
        steal.until_ns = e.time_ns;
        steal.to_goroutine = e.args[0];
        open_steals[proc] = 0;
      }
      return true;
    }
    const bool is_arrow = e.kind == Kind::ready || e.kind == Kind::create || e.kind == Kind::steal;
    if (!is_arrow || e.time_ns < from_ns || e.time_ns >= to_ns) return true;
    if (++result.total > limit) return true;
    Arrow arrow;
    arrow.at_ns = e.time_ns;
    if (e.kind == Kind::steal) {
      arrow.kind = Arrow::Kind::steal;
      arrow.from_proc = static_cast<std::int32_t>(e.args[0]);
      arrow.to_proc = e.proc;
      arrow.count = e.args[1];
      arrow.place = Place::stolen;
      if (e.proc >= 0) {
        if (open_steals.size() <= static_cast<std::size_t>(e.proc)) open_steals.resize(e.proc + 1);
        open_steals[e.proc] = result.list.size() + 1;
      }
    } else {
      arrow.kind = e.kind == Kind::create ? Arrow::Kind::create : Arrow::Kind::wake;
      arrow.from_proc = e.proc;
      if (e.kind == Kind::ready && e.args[2] < 4) arrow.source = static_cast<Source>(e.args[2]);
      arrow.from_goroutine = arrow.source == Source::goroutine ? states.actor(e) : 0;
      arrow.to_goroutine = e.args[0];
      const std::uint64_t place = e.kind == Kind::create ? e.args[2] : e.args[1];
      arrow.place = place < kPlaces ? static_cast<Place>(place) : Place::ring;
      open[e.args[0]] = result.list.size();
    }
    result.list.push_back(arrow);
    return true;
  });
  if (result.total > limit) result.list.clear();
  return result;
}

GoroutineRows TraceView::goroutines(const GoroutineQuery& query) const {
  const Inside& in = *inside_;
  GoroutineRows result;
  std::lock_guard lock(in.mutex);
  std::unordered_map<std::uint64_t, bool> site_fits;
  auto fits = [&](const GoroutineRow& row) {
    if (query.state >= 0 && row.state != static_cast<State>(query.state)) return false;
    if (query.site != 0 && row.site != query.site) return false;
    if (query.text.empty()) return true;
    if (std::to_string(row.number) == query.text) return true;
    if (auto name = in.names.find(row.number);
        name != in.names.end() && name->second.find(query.text) != std::string::npos)
      return true;
    auto [known, is_new] = site_fits.try_emplace(row.site);
    if (is_new) known->second = in.symbols->text(row.site).find(query.text) != std::string::npos;
    return known->second;
  };
  std::vector<const GoroutineRow*> fitting;
  for (const GoroutineRow& row : in.rows)
    if (fits(row)) fitting.push_back(&row);
  result.total = fitting.size();
  result.cut = in.rows_cut;
  const std::size_t end = std::min(fitting.size(), query.offset + query.limit);
  auto before = [&](const GoroutineRow* a, const GoroutineRow* b) {
    const std::int64_t of_a = key_of(*a, query.sort), of_b = key_of(*b, query.sort);
    return of_a != of_b ? of_a > of_b : a->number < b->number;
  };
  std::partial_sort(fitting.begin(), fitting.begin() + static_cast<std::ptrdiff_t>(end),
                    fitting.end(), before);
  for (std::size_t i = query.offset; i < end; ++i) result.rows.push_back(*fitting[i]);
  return result;
}

std::uint64_t TraceView::site(std::uint64_t goroutine) const {
  std::lock_guard lock(inside_->mutex);
  const std::uint64_t* found = inside_->sites.find(goroutine);
  return found == nullptr ? 0 : *found;
}

std::string TraceView::name(std::uint64_t goroutine) const {
  std::lock_guard lock(inside_->mutex);
  auto found = inside_->names.find(goroutine);
  return found == inside_->names.end() ? std::string() : found->second;
}

GoroutineHistory TraceView::goroutine(std::uint64_t number, std::int64_t from_ns,
                                      std::int64_t to_ns, std::size_t limit) const {
  GoroutineHistory history;
  auto add = [&](const Goroutine& g, std::int64_t end_ns) {
    if (end_ns < from_ns) return true;
    if (history.segments.size() >= limit) {
      history.cut = true;
      return false;
    }
    history.segments.push_back({g.since_ns, end_ns, g.state,
                                g.state == State::running ? g.proc : -1, g.reason, g.place,
                                g.object, 0});
    return true;
  };
  Goroutine last;
  std::uint64_t woken_by = 0;
  inside_->scan(from_ns, to_ns,
                [&](const States& states, const Event& e, const States::Steps& steps) {
                  for (const Step& step : steps) {
                    if (step.now->number != number) continue;
                    history.site = step.now->site;
                    history.creator = step.now->creator;
                    last = *step.now;
                    const bool is_first =
                        step.before.since_ns == step.now->since_ns && e.kind == Kind::create;
                    if (is_first || step.before.since_ns == step.now->since_ns) continue;
                    const std::size_t before = history.segments.size();
                    if (!add(step.before, step.now->since_ns)) return false;
                    const bool is_shown = history.segments.size() != before;
                    if (is_shown && step.before.state == State::runnable)
                      history.segments.back().woken_by = woken_by;
                    if (e.kind == Kind::ready) woken_by = states.actor(e);
                  }
                  return true;
                });
  if (last.number != 0 && last.state != State::ended && !history.cut) add(last, to_ns);
  return history;
}

}  // namespace magpie::analysis
