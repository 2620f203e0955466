// pyramid.h: a trace in a fixed number of cells of equal width, for views of much of it at once.
//
// The width is not known before the trace was read, so it begins at a microsecond and doubles,
// pairs of cells becoming one, whenever the next event would lie behind the last cell. What needs
// a finer view than a cell reads the events themselves (trace_view.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/states.h"

namespace magpie::analysis {

class Pyramid {
 public:
  struct ProcCell {
    std::uint64_t goroutine = 0;  // that ran; 0: none, or several
    std::int64_t busy_ns = 0, searching_ns = 0, blocking_ns = 0;
    std::uint32_t runs = 0;  // spans that began here
    std::uint32_t ring = 0;  // longest
    bool several = false;
  };
  struct Cell {
    std::uint32_t events = 0, arrows = 0;
    std::uint32_t runnable = 0, global_queue = 0;  // most
    std::int64_t wasted_ns = 0;
    std::int64_t oldest_ns = 0;  // longest time from ready to running, of those that ran here
  };

  explicit Pyramid(std::size_t cells = std::size_t{1} << 15) : most_cells_(cells) {}

  void event(const Event& event, std::uint64_t runnable, std::int64_t wasted_ns);
  void oldest(std::int64_t at_ns, std::int64_t age_ns);
  // P `proc` ran `goroutine` (0: none), or its thread searched.
  enum class What : std::uint8_t { running, blocking, searching };
  void span(std::size_t proc, What what, std::uint64_t goroutine, std::int64_t begin_ns,
            std::int64_t end_ns);

  std::int64_t width_ns() const { return width_ns_; }
  std::size_t procs() const { return procs_.size(); }
  // Of all cells of [from, to), rounded out to whole cells.
  ProcCell sum(std::size_t proc, std::int64_t from_ns, std::int64_t to_ns) const;
  Cell sum(std::int64_t from_ns, std::int64_t to_ns) const;

 private:
  std::size_t index(std::int64_t at_ns);  // makes room
  void double_width();
  static void merge(ProcCell& into, const ProcCell& cell);
  static void merge(Cell& into, const Cell& cell);

  const std::size_t most_cells_;
  std::int64_t width_ns_ = 1024;
  std::vector<std::vector<ProcCell>> procs_;
  std::vector<Cell> cells_;
  std::int64_t last_wasted_ns_ = 0;
};

}  // namespace magpie::analysis
