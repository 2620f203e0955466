// picture.h: turns snapshots of the scheduler into rows of text. Draws nothing itself.
#pragma once

#include <cstddef>
#include <vector>

#include <magpie/stats.h>

#include "row.h"

namespace demo {

class Picture {
 public:
  // The next snapshot, taken `seconds` after the beginning in the given phase.
  void add(double seconds, int phase, magpie::Stats stats);

  bool empty() const { return now_.procs.empty(); }
  int phase() const { return phase_; }

  // A whole screen that fits the paper.
  std::vector<Row> screen(const Paper& paper) const;

  // The same in one line.
  Row line() const;

 private:
  double busy_share(std::size_t proc) const;  // since the last snapshot
  Row title(const Paper& paper) const;
  Row phase_row() const;
  std::vector<Row> table(const Paper& paper, int rows) const;
  Row proc_row(const Paper& paper, std::size_t proc) const;
  std::vector<Row> totals(const Paper& paper) const;
  std::vector<Row> history(const Paper& paper) const;
  std::vector<Row> plan(const Paper& paper) const;

  double seconds_ = 0;
  double elapsed_ = 0;  // between the last two
  int phase_ = -1;
  magpie::Stats now_;
  magpie::Stats before_;
  std::size_t most_procs_ = 0;
  std::vector<double> ended_per_second_;
  std::vector<double> queued_;
};

}  // namespace demo
