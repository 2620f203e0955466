#include "view/stats_json.h"

#include "view/counters.h"
#include "view/json.h"

namespace magpie::view {
namespace {

void write_counters(JsonWriter& json, const ProcStats& stats) {
  json.member("queue_length", stats.queue_length);
  for (const Counter& counter : counters()) json.member(counter.name, stats.*counter.value);
  json.member("busy_ns", stats.busy_ns);
}

void write_lateness(JsonWriter& json, const Lateness& lateness) {
  json.begin_object();
  json.key("bounds_ns").begin_array();
  for (std::int64_t bound : Lateness::kBoundsNs) json.value(bound);
  json.end_array();
  json.key("counts").begin_array();
  for (std::uint64_t count : lateness.counts) json.value(count);
  json.end_array();
  json.member("sum_ns", lateness.sum_ns).member("max_ns", lateness.max_ns);
  json.end_object();
}

}  // namespace

std::string stats_json(const Stats& stats, const Lateness& lateness, std::int64_t time_ns) {
  JsonWriter json;
  json.begin_object();
  json.member("time_ns", time_ns);
  json.member("goroutines", stats.goroutines);
  json.member("fresh", stats.fresh);
  json.member("runnable", stats.runnable);
  json.member("running", stats.running);
  json.member("waiting", stats.waiting);
  json.member("global_queue_length", stats.global_queue_length);
  json.member("timers", stats.timers);
  json.member("idle_procs", stats.idle_procs);
  json.member("threads", stats.threads);
  json.member("idle_threads", stats.idle_threads);
  json.member("searching_threads", stats.searching_threads);
  json.member("goroutines_without_p", stats.goroutines_without_p);
  json.member("preempted_threads", stats.preempted_threads);
  json.member("valve_openings", stats.valve_openings);
  json.member("cpus", stats.cpus);
  json.member("cpu_quota", stats.cpu_quota);
  json.member("quota_periods", stats.quota_periods);
  json.member("throttled_periods", stats.throttled_periods);
  json.member("throttled_ns", stats.throttled_ns);
  json.key("wakeup_lateness");
  write_lateness(json, lateness);
  json.key("total").begin_object();
  write_counters(json, stats.total);
  json.end_object();
  json.key("procs").begin_array();
  for (const ProcStats& p : stats.procs) {
    json.begin_object();
    json.member("id", p.id).member("idle", p.idle).member("has_runnext", p.has_runnext);
    write_counters(json, p);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace magpie::view
