#include "view/metrics.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "view/counters.h"

namespace magpie::view {
namespace {

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = "magpie_" + std::string(name);
    text_ += "# HELP " + name_ + ' ' + std::string(help) + '\n';
    text_ += "# TYPE " + name_ + ' ' + std::string(type) + '\n';
  }
  template <class Number>
  void sample(Number value, std::string_view labels = {}, std::string_view suffix = {}) {
    text_ += name_;
    text_ += suffix;
    if (!labels.empty()) {
      text_ += '{';
      text_ += labels;
      text_ += '}';
    }
    text_ += ' ';
    append(value);
    text_ += '\n';
  }
  template <class Number>
  void gauge(std::string_view name, std::string_view help, Number value) {
    family(name, "gauge", help);
    sample(value);
  }
  std::string take() { return std::move(text_); }

 private:
  template <class Number>
  void append(Number value) {
    char digits[32];
    const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value);
    text_.append(digits, static_cast<std::size_t>(end - digits));
  }

  std::string name_, text_;
};

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string of_proc(const ProcStats& p) { return "proc=\"" + std::to_string(p.id) + '"'; }

template <class Value>
void write_per_proc(Text& text, const Stats& stats, std::string_view name, std::string_view type,
                    std::string_view help, Value value) {
  text.family(name, type, help);
  for (const ProcStats& p : stats.procs) text.sample(value(p), of_proc(p));
}

void write_histogram(Text& text, const Lateness& lateness) {
  text.family("wakeup_lateness_seconds", "histogram",
              "How late a goroutine ran that slept until a given time. Sampled.");
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < Lateness::kBoundsNs.size(); ++i) {
    count += lateness.counts[i];
    char bound[32];
    const auto [end, error] =
        std::to_chars(std::begin(bound), std::end(bound), seconds(Lateness::kBoundsNs[i]));
    text.sample(count, "le=\"" + std::string(bound, end) + '"', "_bucket");
  }
  count += lateness.counts.back();
  text.sample(count, "le=\"+Inf\"", "_bucket");
  text.sample(seconds(lateness.sum_ns), {}, "_sum");
  text.sample(count, {}, "_count");
}

}  // namespace

std::string metrics(const Stats& stats, const Lateness& lateness) {
  Text text;
  text.family("goroutines", "gauge", "Goroutines that have not ended, by state.");
  text.sample(stats.fresh, "state=\"fresh\"");
  text.sample(stats.runnable, "state=\"runnable\"");
  text.sample(stats.running, "state=\"running\"");
  text.sample(stats.waiting, "state=\"waiting\"");
  text.family("threads", "gauge", "Threads that run goroutines, by what they do.");
  text.sample(stats.idle_threads, "state=\"idle\"");
  text.sample(stats.searching_threads, "state=\"searching\"");
  text.sample(stats.preempted_threads, "state=\"stopped\"");
  // The numbers are not of one instant.
  text.sample(std::max(0, stats.threads - stats.idle_threads - stats.searching_threads -
                              stats.preempted_threads),
              "state=\"running\"");
  text.gauge("procs", "Goroutines that may run at a time.", stats.procs.size());
  text.gauge("idle_procs", "Ps that no thread holds.", stats.idle_procs);
  text.gauge("global_queue_length", "Goroutines in the global queue.", stats.global_queue_length);
  text.gauge("timers", "Timers that are armed.", stats.timers);
  text.gauge("goroutines_without_p", "Goroutines that run, or block, without a P.",
             stats.goroutines_without_p);
  write_per_proc(text, stats, "proc_queue_length", "gauge",
                 "Goroutines in the ring and the inbox of a P.",
                 [](const ProcStats& p) { return p.queue_length; });

  for (const Counter& counter : counters()) {
    text.family(std::string(counter.name) + "_total", "counter", counter.help);
    text.sample(stats.total.*counter.value);
  }
  text.family("busy_seconds_total", "counter", "Time in which Ps were held and not idle.");
  text.sample(seconds(stats.total.busy_ns));
  text.family("valve_openings_total", "counter",
              "Times at which stopped goroutines had to run on because one held a lock.");
  text.sample(stats.valve_openings);
  text.gauge("cpus", "CPUs that the affinity mask allows.", stats.cpus);
  text.gauge("cpu_quota_cpus", "CPU time that the cgroups grant, in CPUs. 0: no limit.",
             stats.cpu_quota);
  text.family("quota_periods_total", "counter", "Periods of the CPU quota.");
  text.sample(stats.quota_periods);
  text.family("throttled_periods_total", "counter",
              "Periods in which the CPU quota was used up and the process was stopped.");
  text.sample(stats.throttled_periods);
  text.family("throttled_seconds_total", "counter",
              "Time for which the CPU quota stopped the process, summed over its CPUs.");
  text.sample(seconds(stats.throttled_ns));

  write_per_proc(text, stats, "proc_busy_seconds_total", "counter",
                 "Time in which a P was held and not idle.",
                 [](const ProcStats& p) { return seconds(p.busy_ns); });
  write_per_proc(text, stats, "proc_switches_total", "counter", "Goroutines run by a P.",
                 [](const ProcStats& p) { return p.switches; });
  write_per_proc(text, stats, "proc_goroutines_stolen_total", "counter",
                 "Goroutines moved to a P by its steals.",
                 [](const ProcStats& p) { return p.goroutines_stolen; });
  write_histogram(text, lateness);
  return text.take();
}

}  // namespace magpie::view
