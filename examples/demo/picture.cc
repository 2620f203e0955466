#include "picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "load.h"

namespace demo {
namespace {

constexpr double kRingSlots = 256;
constexpr int kWideColumns = 104;  // from here on the table has three more columns

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string short_count(std::uint64_t count) { return short_number(static_cast<double>(count)); }

struct Column {
  const char* name;
  std::uint64_t magpie::ProcStats::*value;
};
constexpr Column kColumns[] = {
    {"ticks", &magpie::ProcStats::ticks},
    {"born", &magpie::ProcStats::goroutines_started},
    {"ended", &magpie::ProcStats::goroutines_ended},
    {"tried", &magpie::ProcStats::steals_tried},
    {"stole", &magpie::ProcStats::steals_succeeded},
    {"moved", &magpie::ProcStats::goroutines_stolen},
};
constexpr Column kWideColumnsToo[] = {
    {"spilt", &magpie::ProcStats::goroutines_spilled},
    {"parks", &magpie::ProcStats::parks},
    {"wakes", &magpie::ProcStats::wakes},
};
constexpr int kNumberWidth = 7;

struct Widths {
  int ring, busy, total;
};
Widths bar_widths(const Paper& paper) {
  return paper.columns >= kWideColumns ? Widths{14, 10, 30} : Widths{9, 7, 14};
}

std::size_t queued(const magpie::Stats& stats) {
  std::size_t sum = stats.global_queue_length;
  for (const auto& p : stats.procs) sum += p.queue_length + (p.has_runnext ? 1 : 0);
  return sum;
}

// Room for a million in a bar where ten can be seen: a logarithm.
double logarithmic_share(std::size_t count) {
  return std::log2(1 + static_cast<double>(count)) / std::log2(1e6);
}

Row header(const Paper& paper) {
  Widths widths = bar_widths(paper);
  Row row;
  row.add("  P", Ink::dim).skip_to(5).add("ring+next", Ink::dim);
  row.skip_to(5 + widths.ring + 7).add("busy", Ink::dim);
  row.skip_to(5 + widths.ring + 7 + widths.busy + 5);
  for (const Column& column : kColumns) row.right(column.name, kNumberWidth, Ink::dim);
  if (paper.columns < kWideColumns) return row;
  for (const Column& column : kWideColumnsToo) row.right(column.name, kNumberWidth, Ink::dim);
  return row;
}

}  // namespace

void Picture::add(double seconds, int phase, magpie::Stats stats) {
  before_ = std::exchange(now_, std::move(stats));
  elapsed_ = seconds - std::exchange(seconds_, seconds);
  phase_ = phase;
  most_procs_ = std::max(most_procs_, now_.procs.size());
  queued_.push_back(static_cast<double>(queued(now_)));
  double ended = static_cast<double>(now_.total.goroutines_ended) -
                 static_cast<double>(before_.total.goroutines_ended);
  ended_per_second_.push_back(elapsed_ > 0 ? std::max(0.0, ended) / elapsed_ : 0);
}

double Picture::busy_share(std::size_t proc) const {
  if (proc >= now_.procs.size() || elapsed_ <= 0) return 0;
  if (proc >= before_.procs.size()) return 0;  // it has just come back: no earlier value
  double busy = static_cast<double>(now_.procs[proc].busy_ns - before_.procs[proc].busy_ns) / 1e9;
  return std::clamp(busy / elapsed_, 0.0, 1.0);
}

Row Picture::title(const Paper& paper) const {
  Row row;
  row.add(" magpie ", Ink::bold).add("a lopsided load, balanced live", Ink::dim);
  std::string right = std::to_string(now_.procs.size()) +
                      (now_.procs.size() == 1 ? " P    " : " Ps   ") + format("%4.1f s ", seconds_);
  row.skip_to(std::min(paper.columns, 120) - static_cast<int>(right.size())).add(right);
  return row;
}

Row Picture::phase_row() const {
  Row row;
  auto index = static_cast<std::size_t>(phase_);
  row.add(" ").add(std::to_string(index + 1) + "/" + std::to_string(kPhases.size()), Ink::cyan);
  row.add(" ");
  row.add(kPhases[index], Ink::bold);
  return row;
}

Row Picture::proc_row(const Paper& paper, std::size_t proc) const {
  Row row;
  row.right(std::to_string(proc), 3, Ink::bold).add("  ");
  if (proc >= now_.procs.size()) return row.add("not in use", Ink::dim);
  const magpie::ProcStats& p = now_.procs[proc];
  Widths widths = bar_widths(paper);
  add_bar(row, paper, static_cast<double>(p.queue_length) / kRingSlots, widths.ring, Ink::yellow);
  row.right(std::to_string(p.queue_length), 4).add(p.has_runnext ? "+1" : "  ");
  row.add(" ");
  double share = busy_share(proc);
  add_bar(row, paper, share, widths.busy, Ink::green);
  row.right(p.idle && share < 0.005 ? "idle" : format("%.0f%%", share * 100), 5);
  for (const Column& column : kColumns) row.right(short_count(p.*column.value), kNumberWidth);
  if (paper.columns < kWideColumns) return row;
  for (const Column& column : kWideColumnsToo)
    row.right(short_count(p.*column.value), kNumberWidth);
  return row;
}

std::vector<Row> Picture::table(const Paper& paper, int rows) const {
  std::vector<Row> table = {header(paper)};
  auto fits = static_cast<std::size_t>(std::max(2, rows));
  if (most_procs_ + 1 <= fits) {
    for (std::size_t i = 0; i < most_procs_; ++i) table.push_back(proc_row(paper, i));
    return table;
  }
  std::size_t shown = std::max<std::size_t>(1, fits - 2);
  for (std::size_t i = 0; i < shown; ++i) table.push_back(proc_row(paper, i));
  Row more;
  more.add("     and ", Ink::dim).add(std::to_string(most_procs_ - shown), Ink::dim);
  more.add(" more", Ink::dim);
  table.push_back(more);
  return table;
}

std::vector<Row> Picture::totals(const Paper& paper) const {
  const magpie::ProcStats& total = now_.total;
  int width = bar_widths(paper).total;
  Row global;
  global.add(" global queue  ");
  add_bar(global, paper, logarithmic_share(now_.global_queue_length), width, Ink::magenta);
  global.right(short_count(now_.global_queue_length), 6);
  global.add("   spilt ", Ink::dim).add(short_count(total.goroutines_spilled));
  global.add(" batches taken back ", Ink::dim).add(short_count(total.global_batches));

  Row goroutines;
  goroutines.add(" goroutines    ");
  add_bar(goroutines, paper, logarithmic_share(now_.goroutines), width, Ink::cyan);
  goroutines.right(short_count(now_.goroutines), 6);
  goroutines.add("   fresh ", Ink::dim).add(short_count(now_.fresh));
  goroutines.add(" ready ", Ink::dim).add(short_count(now_.runnable));
  goroutines.add(" running ", Ink::dim).add(short_count(now_.running));
  goroutines.add(" waiting ", Ink::dim).add(short_count(now_.waiting));

  Row threads;
  threads.add(" threads       ");
  add_bar(threads, paper,
          static_cast<double>(now_.threads - now_.idle_threads) / std::max(1, now_.threads), width,
          Ink::blue);
  threads.right(std::to_string(now_.threads), 6);
  threads.add("   asleep ", Ink::dim).add(std::to_string(now_.idle_threads));
  threads.add(" searching ", Ink::dim).add(std::to_string(now_.searching_threads));
  threads.add("  parks ", Ink::dim).add(short_count(total.parks));
  threads.add(" wakes ", Ink::dim).add(short_count(total.wakes));
  return {global, goroutines, threads};
}

std::vector<Row> Picture::history(const Paper& paper) const {
  int width = std::min(paper.columns, 120) - 24;
  Row ended;
  ended.add(" ended per s   ", Ink::dim);
  add_sparkline(ended, paper, ended_per_second_, width, Ink::green);
  ended.right(short_number(ended_per_second_.back()), 7);
  Row waiting;
  waiting.add(" in queues     ", Ink::dim);
  add_sparkline(waiting, paper, queued_, width, Ink::yellow);
  waiting.right(short_number(queued_.back()), 7);
  return {ended, waiting};
}

std::vector<Row> Picture::plan(const Paper& paper) const {
  std::vector<Row> rows;
  for (int i = 0; i < static_cast<int>(kPhases.size()); ++i) {
    const char* done = paper.blocks ? "✓" : "x";
    const char* now = paper.blocks ? "▶" : ">";
    Row row;
    row.add(" ").add(i < phase_ ? done : i == phase_ ? now : " ", Ink::green).add(" ");
    row.add(kPhases[static_cast<std::size_t>(i)], i == phase_ ? Ink::plain : Ink::dim);
    rows.push_back(row);
  }
  return rows;
}

std::vector<Row> Picture::screen(const Paper& paper) const {
  const Row blank;
  Row legend;
  legend.add(" born, ended: on this P   steals: tried, stole, goroutines moved here", Ink::dim);
  std::vector<Row> above = {title(paper), phase_row()};
  std::vector<Row> below;
  auto append = [&](const std::vector<Row>& rows) {
    below.insert(below.end(), rows.begin(), rows.end());
  };
  // Half of the screen for the table; what is left goes to the rest, the most telling first.
  int spare = paper.rows - 2 - std::min(paper.rows / 2 - 1, static_cast<int>(most_procs_) + 1);
  auto afford = [&spare](int rows) {
    if (spare < rows) return false;
    spare -= rows;
    return true;
  };
  bool with_totals = afford(3);
  bool with_history = afford(2);
  bool with_blanks = afford(3);
  bool with_legend = afford(1);
  bool with_plan = afford(6);
  if (with_blanks) above.push_back(blank);
  if (with_legend) append({legend});
  if (with_blanks) append({blank});
  if (with_totals) append(totals(paper));
  if (with_blanks) append({blank});
  if (with_history) append(history(paper));
  if (with_plan) {
    append({blank});
    append(plan(paper));
  }

  std::vector<Row> rows = above;
  int room = paper.rows - static_cast<int>(above.size() + below.size());
  for (Row& row : table(paper, room)) rows.push_back(std::move(row));
  rows.insert(rows.end(), below.begin(), below.end());
  return rows;
}

Row Picture::line() const {
  constexpr std::size_t kShown = 4;
  std::size_t shown = std::min(kShown, now_.procs.size());
  const char* and_more = now_.procs.size() > kShown ? " ..." : "";
  const magpie::ProcStats& total = now_.total;
  Row row;
  row.add(format("%5.1f s  busy", seconds_));
  for (std::size_t i = 0; i < shown; ++i) row.add(format(" %3.0f%%", busy_share(i) * 100));
  row.add(and_more).add("  rings");
  for (std::size_t i = 0; i < shown; ++i) {
    row.right(std::to_string(now_.procs[i].queue_length), 4);
    row.add(now_.procs[i].has_runnext ? "+1" : "  ");
  }
  row.add(and_more).add("  global").right(short_count(now_.global_queue_length), 6);
  row.add("  goroutines").right(short_count(now_.goroutines), 6);
  row.add(" (fresh ").add(short_count(now_.fresh)).add(", ready ").add(short_count(now_.runnable));
  row.add(", running ").add(short_count(now_.running)).add(", waiting ");
  row.add(short_count(now_.waiting)).add(")  ended ").add(short_count(total.goroutines_ended));
  row.add("  steals ").add(short_count(total.steals_succeeded)).add("/");
  row.add(short_count(total.steals_tried)).add(" moved ").add(short_count(total.goroutines_stolen));
  row.add("  spilt ").add(short_count(total.goroutines_spilled)).add("  threads ");
  row.add(std::to_string(now_.threads)).add("  parks ").add(short_count(total.parks));
  row.add("  wakes ").add(short_count(total.wakes));
  return row;
}

}  // namespace demo
