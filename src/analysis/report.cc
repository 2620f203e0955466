#include "analysis/report.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <ostream>

#include "sched/wait_reason.h"

namespace magpie::analysis {

namespace {

template <class... Args>
std::string format(const char* how, Args... args) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, how, args...);
  return buffer;
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return format("%.1f %%",
                whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
}

std::string reason_text(std::uint8_t reason) {
  const char* text = sched::text(static_cast<sched::WaitReason>(reason));
  return text == nullptr || *text == '\0' ? "unknown" : text;
}

// In a table a name takes what is left of the line.
std::string shortened(std::string name, std::size_t most = 60) {
  if (name.size() > most) name = name.substr(0, most - 3) + "...";
  return name;
}

class Report {
 public:
  Report(std::ostream& out, const Summary& summary, const ReportOptions& options)
      : out_(out), s_(summary), rows_(options.rows), name_(options.name) {}

  void print() {
    overview();
    utilisation();
    latency();
    anatomy();
    regions();
    steals();
    conservation();
    waits();
    blockers();
    chains();
    runs();
  }

 private:
  std::string name(std::uint64_t pc) const {
    if (pc == 0) return "unknown";
    return name_ ? name_(pc) : format("0x%" PRIx64, pc);
  }

  void head(const char* title) { out_ << '\n' << title << '\n'; }

  void overview() {
    out_ << format("%s, %" PRIu64 " events, %zu Ps, %" PRIu64 " threads\n",
                   duration_text(s_.duration_ns()).c_str(), s_.events, s_.procs.size(), s_.threads);
    out_ << format("goroutines: %" PRIu64 " started, %" PRIu64 " ended, %" PRIu64
                   " alive at the end\n",
                   s_.goroutines_started, s_.goroutines_ended, s_.goroutines_alive);
    if (s_.lost != 0)
      out_ << format("LOST: %" PRIu64 " events found no room. Counts below are too low.\n",
                     s_.lost);
  }

  void utilisation() {
    head("Utilisation of the Ps");
    out_ << format("  %-4s %9s %9s %9s %9s %9s %10s\n", "P", "running", "searching", "scheduler",
                   "handover", "idle", "runs");
    const std::int64_t whole = s_.duration_ns();
    ProcSummary sum;
    for (std::size_t i = 0; i < s_.procs.size(); ++i) {
      const ProcSummary& p = s_.procs[i];
      if (i < 64) row_of(format("%zu", i), p, whole);
      sum.running_ns += p.running_ns;
      sum.searching_ns += p.searching_ns;
      sum.scheduler_ns += p.scheduler_ns;
      sum.handed_over_ns += p.handed_over_ns;
      sum.idle_ns += p.idle_ns;
      sum.runs += p.runs;
    }
    row_of("all", sum, whole * static_cast<std::int64_t>(s_.procs.size()));
    const auto kind = [this](Kind k) { return s_.kinds[static_cast<std::size_t>(k)]; };
    out_ << format("  threads woken %" PRIu64 " (for nothing %" PRIu64 "), put to sleep %" PRIu64
                   "; preemptions and hand-offs %" PRIu64 "; spills %" PRIu64 "\n",
                   kind(Kind::thread_wake), s_.wakes_for_nothing, kind(Kind::thread_park),
                   kind(Kind::taken), kind(Kind::spill));
  }

  void row_of(const std::string& label, const ProcSummary& p, std::int64_t whole) {
    out_ << format("  %-4s %9s %9s %9s %9s %9s %10" PRIu64 "\n", label.c_str(),
                   percent(p.running_ns, whole).c_str(), percent(p.searching_ns, whole).c_str(),
                   percent(p.scheduler_ns, whole).c_str(), percent(p.handed_over_ns, whole).c_str(),
                   percent(p.idle_ns, whole).c_str(), p.runs);
  }

  void latency() {
    head("From ready to running");
    const Histogram<>& all = s_.ready_to_running;
    if (all.count() == 0) {
      out_ << "  none\n";
      return;
    }
    out_ << format(
        "  %" PRIu64 " times: p50 %s, p90 %s, p99 %s, p99.9 %s, longest %s\n", all.count(),
        duration_text(all.quantile(0.5)).c_str(), duration_text(all.quantile(0.9)).c_str(),
        duration_text(all.quantile(0.99)).c_str(), duration_text(all.quantile(0.999)).c_str(),
        duration_text(all.largest()).c_str());
    std::map<int, std::uint64_t> octaves;
    std::uint64_t most = 0;
    for (const auto& [index, bucket] : all.buckets()) {
      const auto lower = static_cast<std::uint64_t>(lower_end_of(index));
      std::uint64_t& count = octaves[std::bit_width(lower)];
      count += bucket.count;
      most = std::max(most, count);
    }
    for (const auto& [bits, count] : octaves) {
      const std::int64_t below = std::int64_t{1} << bits;
      const auto bar =
          static_cast<std::size_t>(40.0 * static_cast<double>(count) / static_cast<double>(most));
      out_ << format("  < %-8s %10" PRIu64 " ", duration_text(below).c_str(), count)
           << std::string(std::max<std::size_t>(bar, 1), '#') << '\n';
    }
    out_ << "  oldest in each line:\n";
    for (int i = 0; i < kPlaces; ++i) {
      const Oldest& oldest = s_.oldest[i];
      if (oldest.goroutine == 0) continue;
      out_ << format("    %-12s %9s, goroutine %" PRIu64 " at %s, ", text(static_cast<Place>(i)),
                     duration_text(oldest.age_ns).c_str(), oldest.goroutine,
                     duration_text(oldest.at_ns).c_str())
           << shortened(name(oldest.site)) << '\n';
    }
  }

  // The parts that matter, as "running 61.2 %, blocked 30.0 %".
  std::string parts_text(const Parts& parts) const {
    std::vector<std::pair<std::int64_t, Part>> order;
    for (int i = 0; i < kParts; ++i)
      if (parts.ns[i] != 0) order.emplace_back(parts.ns[i], static_cast<Part>(i));
    std::ranges::sort(order, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string line;
    for (const auto& [ns, part] : order) {
      if (!line.empty()) line += ", ";
      line += std::string(text(part)) + " " + percent(ns, parts.sum());
    }
    return line;
  }

  void quantiles(const Anatomy& lives) {
    for (auto [label, share] : {std::pair("p50", 0.5), {"p99", 0.99}, {"p99.9", 0.999}}) {
      const Anatomy::Bucket* bucket = lives.at(share);
      if (bucket == nullptr) continue;
      out_ << format("    %-6s %9s  ", label, duration_text(lives.quantile(share)).c_str())
           << parts_text(bucket->extra) << '\n';
    }
  }

  void anatomy() {
    head("Anatomy of latency, by what the goroutines run (parts add up to their lives)");
    for (std::size_t i = 0; i < std::min(rows_, s_.sites.size()); ++i) {
      const SiteSummary& site = s_.sites[i];
      out_ << "  " << shortened(name(site.site), 90) << '\n';
      out_ << format("    %" PRIu64 " started, %" PRIu64 " ended, %" PRIu64 " alive, %" PRIu64
                     " runs; in all %s: ",
                     site.started, site.ended, site.alive, site.runs,
                     duration_text(site.total.sum()).c_str())
           << parts_text(site.total) << '\n';
      quantiles(site.lives);
    }
    more(s_.sites.size());
  }

  void regions() {
    if (s_.regions.empty()) return;
    head("Regions");
    for (std::size_t i = 0; i < std::min(rows_, s_.regions.size()); ++i) {
      const RegionSummary& region = s_.regions[i];
      out_ << "  " << shortened(region.name)
           << format(": %" PRIu64 " times\n", region.times.count());
      quantiles(region.times);
    }
    more(s_.regions.size());
  }

  void steals() {
    std::uint64_t hits = 0, misses = 0, moved = 0;
    for (const auto& row : s_.steals)
      for (const StealCell& cell : row)
        hits += cell.hits, misses += cell.misses, moved += cell.moved;
    head("Steals");
    out_ << format("  %" PRIu64 " looks, %" PRIu64 " steals of %" PRIu64 " goroutines\n",
                   hits + misses, hits, moved);
    if (hits == 0 || s_.steals.size() > 16) return;
    out_ << "  thief by victim: steals/looks, moved, mean time until the first of them ran\n";
    for (std::size_t thief = 0; thief < s_.steals.size(); ++thief)
      for (std::size_t victim = 0; victim < s_.steals[thief].size(); ++victim) {
        const StealCell& cell = s_.steals[thief][victim];
        if (cell.hits == 0) continue;
        const std::int64_t mean =
            cell.ran == 0 ? 0 : cell.until_ran_ns / static_cast<std::int64_t>(cell.ran);
        out_ << format("    P%zu from P%zu: %" PRIu64 "/%" PRIu64 ", %" PRIu64 ", %s\n", thief,
                       victim, cell.hits, cell.hits + cell.misses, cell.moved,
                       duration_text(mean).c_str());
      }
  }

  void conservation() {
    head("Work conservation: P time idle while a goroutine waited in a line");
    const std::int64_t total = s_.work.total_ns();
    out_ << format("  %s (%s of all P time)\n", duration_text(total).c_str(),
                   percent(total, s_.duration_ns() * static_cast<std::int64_t>(
                                                         std::max<std::size_t>(s_.procs.size(), 1)))
                       .c_str());
    for (int i = 0; i < kCauses; ++i)
      if (s_.work.wasted_ns[i] != 0)
        out_ << format("    %9s  %s\n", duration_text(s_.work.wasted_ns[i]).c_str(),
                       text(static_cast<Cause>(i)));
    if (s_.work.violations == 0) return;
    out_ << format("  VIOLATIONS: %" PRIu64 " times nobody was woken. The longest:\n",
                   s_.work.violations);
    for (std::size_t i = 0; i < std::min(rows_, s_.work.worst.size()); ++i) {
      const Waste& waste = s_.work.worst[i];
      out_ << format("    at %s for %s: P%d idle, goroutine %" PRIu64 " in the %s, ",
                     duration_text(waste.begin_ns).c_str(),
                     duration_text(waste.end_ns - waste.begin_ns).c_str(), waste.proc,
                     waste.goroutine, text(waste.place))
           << shortened(name(waste.site)) << '\n';
    }
  }

  void waits() {
    head("Waits, by reason and by what waits");
    for (std::size_t i = 0; i < std::min(rows_, s_.waits.size()); ++i) {
      const WaitClass& waits = s_.waits[i];
      out_ << format("  %-18s %9s in %8" PRIu64 ", longest %9s  ",
                     reason_text(waits.reason).c_str(), duration_text(waits.sum_ns).c_str(),
                     waits.count, duration_text(waits.longest_ns).c_str())
           << shortened(name(waits.site)) << '\n';
    }
    more(s_.waits.size());
    if (!s_.longest_waits.empty()) out_ << "  longest:\n";
    for (std::size_t i = 0; i < std::min(rows_, s_.longest_waits.size()); ++i) {
      const Wait& wait = s_.longest_waits[i];
      out_ << format("    %9s  goroutine %" PRIu64 ", %s 0x%" PRIx64 ", from %s, %s",
                     duration_text(wait.duration_ns).c_str(), wait.goroutine,
                     reason_text(wait.reason).c_str(), wait.object,
                     duration_text(wait.begin_ns).c_str(), wait.ended ? "woken" : "waits still");
      if (wait.waker != 0) out_ << format(" by goroutine %" PRIu64, wait.waker);
      out_ << ", " << shortened(name(wait.site)) << '\n';
    }
  }

  void blockers() {
    head("Who blocks whom");
    for (std::size_t i = 0; i < std::min(rows_, s_.blockers.size()); ++i) {
      const BlockEdge& edge = s_.blockers[i];
      out_ << format("  %9s in %8" PRIu64 "  %s: ", duration_text(edge.sum_ns).c_str(), edge.count,
                     reason_text(edge.reason).c_str())
           << shortened(name(edge.waiter_site), 45) << " waits for "
           << (edge.source == Source::goroutine ? shortened(name(edge.waker_site), 45)
                                                : std::string("the ") + text(edge.source))
           << '\n';
    }
    more(s_.blockers.size());
  }

  void chain(const Chain& chain) {
    for (std::size_t i = 0; i < std::min(rows_, chain.last.size()); ++i) {
      const Hop& hop = chain.last[i];
      out_ << format("    at %9s goroutine %" PRIu64
                     ": ran %s, queued %s, else %s, made ready by %s, ",
                     duration_text(hop.ready_ns).c_str(), hop.goroutine,
                     duration_text(hop.running_ns).c_str(), duration_text(hop.queued_ns).c_str(),
                     duration_text(hop.other_ns).c_str(),
                     hop.source == Source::goroutine ? "the next" : text(hop.source))
           << shortened(name(hop.site), 45) << '\n';
    }
  }

  void chains() {
    head("Wake chains (the latest first)");
    out_ << format("  critical path of the goroutine that ended last: %" PRIu64
                   " hops, from %s to %s\n",
                   s_.critical_path.hops, duration_text(s_.critical_path.begin_ns).c_str(),
                   duration_text(s_.critical_path.end_ns).c_str());
    chain(s_.critical_path);
    out_ << format("  longest chain: %" PRIu64 " hops, from %s to %s\n", s_.longest_chain.hops,
                   duration_text(s_.longest_chain.begin_ns).c_str(),
                   duration_text(s_.longest_chain.end_ns).c_str());
  }

  void runs() {
    head("Longest runs without leaving the P");
    for (std::size_t i = 0; i < std::min(rows_, s_.longest_runs.size()); ++i) {
      const LongRun& run = s_.longest_runs[i];
      out_ << format("  %9s  goroutine %" PRIu64 " on P%d from %s, ",
                     duration_text(run.duration_ns).c_str(), run.goroutine, run.proc,
                     duration_text(run.begin_ns).c_str())
           << shortened(name(run.site)) << '\n';
    }
  }

  void more(std::size_t size) {
    if (size > rows_) out_ << format("  ... and %zu more\n", size - rows_);
  }

  std::ostream& out_;
  const Summary& s_;
  const std::size_t rows_;
  const NameOfCode& name_;
};

}  // namespace

std::string duration_text(std::int64_t ns) {
  const char* sign = ns < 0 ? "-" : "";
  double value = ns < 0 ? -static_cast<double>(ns) : static_cast<double>(ns);
  if (value < 1000) return format("%s%.0f ns", sign, value);
  const char* units[] = {"us", "ms", "s"};
  int unit = -1;
  while (value >= 999.5 && unit < 2) {
    value /= 1000;
    ++unit;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return format("%s%.*f %s", sign, digits, value, units[unit]);
}

void print_summary(std::ostream& out, const Summary& summary, const ReportOptions& options) {
  Report(out, summary, options).print();
}

}  // namespace magpie::analysis
