// doctor.cc: what hurts. Each finding is one function that looks at the summary and says nothing
// when all is well.

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <ostream>

#include "analysis/format.h"
#include "analysis/report.h"
#include "sched/wait_reason.h"

namespace magpie::analysis {

namespace {

using Weight = Finding::Weight;
using Findings = std::vector<Finding>;

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// What is shorter hurts nobody.
constexpr std::int64_t kNoticeable = 1'000'000;

struct Patient {
  const Summary& s;
  const NameOfCode& name;

  std::int64_t p_time() const {
    return s.duration_ns() * static_cast<std::int64_t>(std::max<std::size_t>(s.procs.size(), 1));
  }
  std::string code(std::uint64_t pc) const {
    if (pc == 0) return "unknown code";
    return name ? name(pc) : format("0x%" PRIx64, pc);
  }
};

void lost_events(const Patient& p, Findings& list) {
  if (p.s.lost == 0) return;
  list.push_back(
      {Weight::note, "lost-events", "The trace is not complete.",
       format("%" PRIu64 " events found no room", p.s.lost),
       "Give the recorder more memory, or trace for a shorter time. Figures below are too low."});
}

void lost_wake_up(const Patient& p, Findings& list) {
  const WorkConservation& work = p.s.work;
  if (work.violations == 0) return;
  const Waste& worst = work.worst.front();
  // Without all events the wake-up may be among those that were lost.
  const bool is_sure = p.s.lost == 0;
  list.push_back(
      {is_sure ? Weight::fault : Weight::note, "lost-wake-up",
       "A P idled while a goroutine waited, and no thread was woken for it.",
       format("%" PRIu64 " times; the longest at %s for %s: P%d idle, goroutine %" PRIu64
              " in the %s",
              work.violations, duration_text(worst.begin_ns).c_str(),
              duration_text(worst.end_ns - worst.begin_ns).c_str(), worst.proc, worst.goroutine,
              text(worst.place)),
       is_sure
           ? "This is a fault of the scheduler, not of your program. Please report it with the "
             "trace."
           : "The trace has lost events, perhaps those that explain it. Record a complete one."});
}

void idle_beside_queues(const Patient& p, Findings& list) {
  const WorkConservation& work = p.s.work;
  const std::int64_t explained = work.total_ns() - work.wasted_ns[static_cast<int>(Cause::no_wake)];
  if (explained < kNoticeable || share(explained, p.p_time()) < 0.05) return;
  int cause = 1;
  for (int i = 2; i < kCauses; ++i)
    if (work.wasted_ns[i] > work.wasted_ns[cause]) cause = i;
  std::string advice =
      "Start goroutines that work longer: each wake-up of a thread costs some microseconds.";
  if (cause == static_cast<int>(Cause::waking) || cause == static_cast<int>(Cause::between))
    advice =
        "The kernel is slow to run threads. Is the machine busy with other programs, or are "
        "there more "
        "Ps than CPUs? Then lower Options::procs, or leave CPUs free.";
  if (cause == static_cast<int>(Cause::handing_over))
    advice =
        "Ps are taken from goroutines that block, or that compute for longer than their turn, and "
        "the next thread comes late. Wrap calls that block in magpie::blocking(). If there are "
        "none: does the machine have enough CPUs for all Ps?";
  if (cause == static_cast<int>(Cause::world_stopped)) advice = "Call set_procs() less often.";
  list.push_back({Weight::warning, "idle-beside-queue",
                  "Ps idled beside goroutines that could have run.",
                  format("%s of P time (%.1f %%), mostly because ",
                         duration_text(explained).c_str(), 100 * share(explained, p.p_time())) +
                      text(static_cast<Cause>(cause)),
                  advice});
}

void blocked_p(const Patient& p, Findings& list) {
  for (const SiteSummary& site : p.s.sites) {
    if (site.blocked_undeclared == 0) continue;
    list.push_back({Weight::warning, "blocked-p", "Goroutines blocked their P without blocking().",
                    format("%" PRIu64 " times, %s in all: ", site.blocked_undeclared,
                           duration_text(site.total[Part::blocking_call]).c_str()) +
                        p.code(site.site),
                    "Wrap the call in magpie::blocking(), or use the runtime's own sleep, file and "
                    "socket calls: "
                    "the P stands still until the monitor notices."});
    return;  // sites are sorted: the first is the largest
  }
}

void long_runs(const Patient& p, Findings& list) {
  std::uint64_t preempted = 0;
  const SiteSummary* most = nullptr;
  for (const SiteSummary& site : p.s.sites) {
    preempted += site.preempted;
    if (site.preempted != 0 && (most == nullptr || site.preempted > most->preempted)) most = &site;
  }
  if (most == nullptr || preempted < 10) return;
  list.push_back(
      {Weight::note, "long-runs",
       "Goroutines compute for long without a call that lets others run.",
       format("%" PRIu64 " preemptions, %" PRIu64 " of them of ", preempted, most->preempted) +
           p.code(most->site),
       "That is allowed. If others wait too long beside them, call magpie::yield() in the loop, or "
       "split the work with parallel_for."});
}

void steal_storm(const Patient& p, Findings& list) {
  std::uint64_t hits = 0, misses = 0;
  for (const auto& row : p.s.steals)
    for (const StealCell& cell : row) hits += cell.hits, misses += cell.misses;
  std::int64_t searching = 0;
  for (const ProcSummary& proc : p.s.procs) searching += proc.searching_ns;
  if (share(searching, p.p_time()) < 0.2 || misses < 10 * (hits + 1) || misses < 1000) return;
  list.push_back({Weight::warning, "steal-storm", "Threads search for work that is not there.",
                  format("%.1f %% of P time searching, %" PRIu64 " looks for %" PRIu64 " steals",
                         100 * share(searching, p.p_time()), hits + misses, hits),
                  "There is less to do at a time than there are Ps, in pieces too small. Lower "
                  "Options::procs, or "
                  "give each goroutine more to do."});
}

void ping_pong(const Patient& p, Findings& list) {
  if (p.s.ping_pong.empty()) return;
  const PingPong& turns = p.s.ping_pong.front();
  const std::int64_t length = turns.end_ns - turns.begin_ns;
  if (share(length, p.s.duration_ns()) < 0.05 && length < 10'000'000) return;
  list.push_back(
      {Weight::note, "ping-pong", "Two goroutines hand one P to each other all the time.",
       format("goroutines %" PRIu64 " and %" PRIu64 " on P%d: %" PRIu64 " runs in %s, from %s",
              turns.first, turns.second, turns.proc, turns.turns, duration_text(length).c_str(),
              duration_text(turns.begin_ns).c_str()),
       "They never run at the same time. If they could, give the channel between them a buffer, or "
       "send more at "
       "a time; if not, one goroutine may be enough."});
}

void many_threads(const Patient& p, Findings& list) {
  const std::uint64_t many = 8 * std::max<std::size_t>(p.s.procs.size(), 1) + 16;
  if (p.s.most_without_p <= many) return;
  list.push_back(
      {Weight::warning, "many-threads",
       "Many threads at once: goroutines in blocking calls need one each.",
       format("%" PRIu64 " goroutines without a P at one time, %" PRIu64 " threads held Ps",
              p.s.most_without_p, p.s.threads),
       "Limit how many enter blocking() at a time with a magpie::Semaphore or a WorkerPool."});
}

void quota(const Patient& p, Findings& list) {
  const QuotaUse use{p.s.quota_periods, p.s.throttled_periods, p.s.throttled_ns, p.s.quota};
  if (auto found = finding_of(use, static_cast<int>(p.s.procs.size()))) list.push_back(*found);
}

void throttled(const Patient& p, Findings& list) {
  if (p.s.throttled_periods != 0) return;  // quota() knows why
  if (p.s.silences < 3 || share(p.s.silent_ns, p.s.duration_ns()) < 0.02) return;
  const bool blocks = std::ranges::any_of(
      p.s.sites, [](const SiteSummary& site) { return site.blocked_undeclared != 0; });
  list.push_back(
      {Weight::warning, "throttled", "At times the whole process stood still, with work to do.",
       format("%" PRIu64 " times, %s in all, the longest %s", p.s.silences,
              duration_text(p.s.silent_ns).c_str(), duration_text(p.s.longest_silence_ns).c_str()),
       std::string(blocks ? "Perhaps all Ps were blocked at once: see blocked-p. If not: it "
                          : "It ") +
           "looks throttled: by a cgroup's CPU quota (see nr_throttled in cpu.stat), or by a "
           "machine with "
           "more to do than CPUs. Raise the quota, or set Options::procs to what the quota "
           "allows."});
}

void one_busy_p(const Patient& p, Findings& list) {
  if (p.s.procs.size() < 2 || p.s.duration_ns() < kNoticeable) return;
  std::int64_t busiest = 0, all = 0;
  for (const ProcSummary& proc : p.s.procs) {
    busiest = std::max(busiest, proc.running_ns);
    all += proc.running_ns;
  }
  if (share(busiest, p.s.duration_ns()) < 0.8 || share(busiest, all) < 0.8) return;
  list.push_back({Weight::note, "one-busy-p", "One P does nearly everything.",
                  format("%.0f %% of all running time is on one of %zu Ps",
                         100 * share(busiest, all), p.s.procs.size()),
                  "The work is one goroutine, or a chain in which each waits for the one before. "
                  "If the process "
                  "uses little CPU, a goroutine blocks without magpie::blocking(). "
                  "See the critical "
                  "path in `magpie trace summary`."});
}

bool is_lock(std::uint8_t reason) {
  using sched::WaitReason;
  const auto why = static_cast<WaitReason>(reason);
  return why == WaitReason::mutex || why == WaitReason::rw_mutex_read ||
         why == WaitReason::rw_mutex_write;
}

void contended_lock(const Patient& p, Findings& list) {
  for (const BlockEdge& edge : p.s.blockers) {
    if (edge.source != Source::goroutine || !is_lock(edge.reason)) continue;
    if (edge.sum_ns < kNoticeable || share(edge.sum_ns, p.p_time()) < 0.1) return;
    list.push_back(
        {Weight::warning, "contended-lock", "Goroutines wait long for a lock.",
         format("%s in %" PRIu64 " waits: ", duration_text(edge.sum_ns).c_str(), edge.count) +
             p.code(edge.waiter_site) + " waits for " + p.code(edge.waker_site),
         "Hold the lock for less, split what it guards, or let one goroutine own the data and send "
         "to it."});
    return;
  }
}

void growing(const Patient& p, Findings& list) {
  for (const SiteSummary& site : p.s.sites) {
    if (site.site == 0 || site.started < 100 || site.alive < site.started * 9 / 10) continue;
    if (share(site.total[Part::blocked], site.total.sum()) < 0.9) continue;
    list.push_back(
        {Weight::warning, "leak", "Goroutines are started and do not end: a leak?",
         format("%" PRIu64 " started in the trace, %" PRIu64 " alive, nearly all blocked: ",
                site.started, site.alive) +
             p.code(site.site),
         "See on what they wait: `magpie dump PID`. Close their channel, or give them a Context."});
  }
}

std::string cpus_text(double cpus) { return format("%.3g CPU%s", cpus, cpus == 1 ? "" : "s"); }

std::string advice_for(const QuotaUse& use, int procs) {
  std::string advice = "Raise the quota (Docker: --cpus, Kubernetes: limits.cpu, systemd: CPUQuota";
  if (use.quota > 0) advice += "; now " + cpus_text(use.quota);
  advice += "), or do less.";
  const int enough = std::max(2, static_cast<int>(std::ceil(use.quota)));
  if (use.quota > 0 && procs > enough) {
    advice += format(
        " %d Ps use it up sooner, and then all stand still: leave Options::procs at "
        "its default, or set it to %d.",
        procs, enough);
  }
  return advice;
}

}  // namespace

std::optional<Finding> finding_of(const QuotaUse& use, int procs) {
  // A program that starts, or a burst, may hit its quota now and then.
  if (use.throttled_periods == 0 || use.throttled_periods * 20 < use.periods) return std::nullopt;
  return Finding{
      Weight::warning, "quota", "The process is throttled by its CPU quota.",
      format("in %" PRIu64 " of %" PRIu64 " periods, for %s summed over the CPUs",
             use.throttled_periods, use.periods, duration_text(use.throttled_ns).c_str()),
      advice_for(use, procs)};
}

std::vector<Finding> examine(const Summary& summary, const NameOfCode& name) {
  const Patient patient{summary, name};
  Findings list;
  for (auto* look :
       {lost_wake_up, quota, throttled, blocked_p, idle_beside_queues, contended_lock, growing,
        steal_storm, many_threads, ping_pong, one_busy_p, long_runs, lost_events})
    look(patient, list);
  std::ranges::stable_sort(list,
                           [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
  return list;
}

void print_findings(std::ostream& out, const std::vector<Finding>& findings) {
  if (findings.empty()) {
    out << "Nothing hurts.\n";
    return;
  }
  for (const Finding& finding : findings) {
    const char* weight = finding.weight == Weight::fault     ? "FAULT"
                         : finding.weight == Weight::warning ? "warning"
                                                             : "note";
    out << weight << " [" << finding.id << "] " << finding.what << "\n  seen: " << finding.shown_by
        << "\n  do:   " << finding.advice << "\n";
  }
}

}  // namespace magpie::analysis
