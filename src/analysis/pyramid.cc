#include "analysis/pyramid.h"

#include <algorithm>

namespace magpie::analysis {

void Pyramid::merge(ProcCell& into, const ProcCell& cell) {
  const bool both = into.goroutine != 0 && cell.goroutine != 0 && into.goroutine != cell.goroutine;
  into.several = into.several || cell.several || both;
  into.goroutine = into.several ? 0 : std::max(into.goroutine, cell.goroutine);
  into.busy_ns += cell.busy_ns;
  into.searching_ns += cell.searching_ns;
  into.blocking_ns += cell.blocking_ns;
  into.runs += cell.runs;
  into.ring = std::max(into.ring, cell.ring);
}

void Pyramid::merge(Cell& into, const Cell& cell) {
  into.events += cell.events;
  into.arrows += cell.arrows;
  into.runnable = std::max(into.runnable, cell.runnable);
  into.global_queue = std::max(into.global_queue, cell.global_queue);
  into.wasted_ns += cell.wasted_ns;
  into.oldest_ns = std::max(into.oldest_ns, cell.oldest_ns);
}

void Pyramid::double_width() {
  auto halve = [](auto& cells) {
    const std::size_t half = (cells.size() + 1) / 2;
    for (std::size_t i = 0; i < half; ++i) {
      auto cell = cells[2 * i];
      if (2 * i + 1 < cells.size()) merge(cell, cells[2 * i + 1]);
      cells[i] = cell;
    }
    cells.resize(half);
  };
  halve(cells_);
  for (auto& cells : procs_) halve(cells);
  width_ns_ *= 2;
}

std::size_t Pyramid::index(std::int64_t at_ns) {
  at_ns = std::max<std::int64_t>(at_ns, 0);
  while (at_ns / width_ns_ >= static_cast<std::int64_t>(most_cells_)) double_width();
  const auto i = static_cast<std::size_t>(at_ns / width_ns_);
  if (i >= cells_.size()) cells_.resize(std::min(most_cells_, i + i / 2 + 64));
  return i;
}

void Pyramid::event(const Event& event, std::uint64_t runnable, std::int64_t wasted_ns) {
  const std::size_t i = index(event.time_ns);
  Cell& cell = cells_[i];
  ++cell.events;
  cell.runnable = std::max(cell.runnable, static_cast<std::uint32_t>(runnable));
  cell.wasted_ns += wasted_ns - last_wasted_ns_;
  last_wasted_ns_ = wasted_ns;
  switch (event.kind) {
    case Kind::create:
    case Kind::ready:
    case Kind::steal:
      ++cell.arrows;
      break;
    case Kind::queue:
      cell.global_queue = std::max(cell.global_queue, static_cast<std::uint32_t>(event.args[1]));
      if (event.proc >= 0 && static_cast<std::size_t>(event.proc) < procs_.size()) {
        auto& of_proc = procs_[event.proc];
        if (of_proc.size() <= i) of_proc.resize(cells_.size());
        of_proc[i].ring = std::max(of_proc[i].ring, static_cast<std::uint32_t>(event.args[0]));
      }
      break;
    default:
      break;
  }
}

void Pyramid::oldest(std::int64_t at_ns, std::int64_t age_ns) {
  Cell& cell = cells_[index(at_ns)];
  cell.oldest_ns = std::max(cell.oldest_ns, age_ns);
}

void Pyramid::span(std::size_t proc, What what, std::uint64_t goroutine, std::int64_t begin_ns,
                   std::int64_t end_ns) {
  if (proc >= procs_.size()) procs_.resize(proc + 1);
  const std::size_t last = index(end_ns), first = index(begin_ns);
  auto& cells = procs_[proc];
  if (cells.size() <= last) cells.resize(cells_.size());
  for (std::size_t i = first; i <= last; ++i) {
    const std::int64_t begin = std::max(begin_ns, static_cast<std::int64_t>(i) * width_ns_);
    const std::int64_t end = std::min(end_ns, static_cast<std::int64_t>(i + 1) * width_ns_);
    if (end <= begin && i != first) break;
    ProcCell one;
    const std::int64_t spent = std::max<std::int64_t>(end - begin, 0);
    if (what == What::searching) {
      one.searching_ns = spent;
    } else {
      one.goroutine = goroutine;
      one.runs = i == first;
      one.busy_ns = spent;
      if (what == What::blocking) one.blocking_ns = spent;
    }
    merge(cells[i], one);
  }
}

Pyramid::ProcCell Pyramid::sum(std::size_t proc, std::int64_t from_ns, std::int64_t to_ns) const {
  ProcCell sum;
  if (proc >= procs_.size() || to_ns <= from_ns) return sum;
  const auto& cells = procs_[proc];
  auto i = static_cast<std::size_t>(std::max<std::int64_t>(from_ns, 0) / width_ns_);
  for (; i < cells.size() && static_cast<std::int64_t>(i) * width_ns_ < to_ns; ++i)
    merge(sum, cells[i]);
  return sum;
}

Pyramid::Cell Pyramid::sum(std::int64_t from_ns, std::int64_t to_ns) const {
  Cell sum;
  if (to_ns <= from_ns) return sum;
  auto i = static_cast<std::size_t>(std::max<std::int64_t>(from_ns, 0) / width_ns_);
  for (; i < cells_.size() && static_cast<std::int64_t>(i) * width_ns_ < to_ns; ++i)
    merge(sum, cells_[i]);
  return sum;
}

}  // namespace magpie::analysis
