#include "view/summary_json.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "view/json.h"
#include "view/words.h"

namespace magpie::view {

using namespace analysis;

namespace {

constexpr std::size_t kMostSites = 200, kMostRows = 200;
constexpr std::uint64_t kSuspectGrowth = 10;

constexpr std::pair<const char*, double> kQuantiles[] = {
    {"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}};

// The first `most` of a list.
template <class List, class Write>
void write_list(JsonWriter& json, const char* name, const List& list, std::size_t most,
                Write write) {
  json.key(name).begin_array();
  for (const auto& one : list) {
    if (most-- == 0) break;
    json.begin_object();
    write(one);
    json.end_object();
  }
  json.end_array();
}

class SummaryWriter {
 public:
  SummaryWriter(const Summary& summary, const SiteText& site_text)
      : summary_(summary), site_text_(site_text) {}

  std::string write() {
    json_.begin_object();
    json_.member("duration_ns", std::max<std::int64_t>(1, summary_.duration_ns()));
    json_.member("events", summary_.events).member("threads", summary_.threads);
    json_.member("wakes_for_nothing", summary_.wakes_for_nothing);
    json_.member("silent_ns", summary_.silent_ns);
    write_procs();
    write_steals();
    write_sites();
    write_latency();
    write_lines();
    write_work();
    write_chain("critical_path", summary_.critical_path);
    write_chain("longest_chain", summary_.longest_chain);
    write_blockers();
    write_runs();
    write_site_texts();
    json_.end_object();
    return json_.take();
  }

 private:
  void site(const char* name, std::uint64_t pc) {
    sites_.insert(pc);
    json_.key(name).address(pc);
  }

  void write_procs() {
    write_list(json_, "procs", summary_.procs, summary_.procs.size(), [&](const ProcSummary& p) {
      json_.member("running_ns", p.running_ns).member("searching_ns", p.searching_ns);
      json_.member("scheduler_ns", p.scheduler_ns).member("idle_ns", p.idle_ns);
      json_.member("handed_over_ns", p.handed_over_ns).member("runs", p.runs);
      json_.member("polls", p.polls).member("empty_polls", p.empty_polls);
      json_.member("timers", p.timers).member("searches", p.searches).member("found", p.found);
      json_.member("wakes", p.wakes).member("parks", p.parks).member("spilled", p.spilled);
      json_.member("global_takes", p.global_takes);
      json_.member("next_slot_returns", p.next_slot_returns);
    });
  }

  void write_steals() {
    json_.key("steals").begin_array();
    for (const std::vector<StealCell>& thief : summary_.steals) {
      json_.begin_array();
      for (const StealCell& cell : thief) {
        json_.begin_object();
        json_.member("misses", cell.misses).member("hits", cell.hits).member("moved", cell.moved);
        json_.member("from_next_slot", cell.from_next_slot).member("ran", cell.ran);
        json_.member("until_ran_ns", cell.until_ran_ns).member("longest_ns", cell.longest_ns);
        json_.member("age_ns", cell.age_ns);
        json_.end_object();
      }
      json_.end_array();
    }
    json_.end_array();
  }

  void write_parts(const char* name, const Parts& parts, std::int64_t of) {
    json_.key(name).begin_array();
    for (std::int64_t ns : parts.ns) json_.value(ns / of);
    json_.end_array();
  }

  void write_sites() {
    json_.key("parts").begin_array();
    for (int i = 0; i < kParts; ++i) json_.value(text(static_cast<Part>(i)));
    json_.end_array();
    write_list(json_, "sites", summary_.sites, kMostSites, [&](const SiteSummary& one) {
      site("site", one.site);
      json_.member("started", one.started).member("ended", one.ended).member("alive", one.alive);
      json_.member("runs", one.runs).member("preempted", one.preempted);
      write_parts("total", one.total, 1);
      json_.key("quantiles").begin_array();
      for (const auto& [name, share] : kQuantiles) {
        const Anatomy::Bucket* bucket = one.lives.at(share);
        if (bucket == nullptr) break;
        json_.begin_object().member("name", name);
        json_.member("whole_ns", one.lives.quantile(share));
        write_parts("parts", bucket->extra, static_cast<std::int64_t>(bucket->count));
        json_.end_object();
      }
      json_.end_array();
    });
  }

  // In buckets of half a power of two, from the first that is not empty to the last.
  void write_latency() {
    const Histogram<>& all = summary_.ready_to_running;
    std::map<int, std::uint64_t> coarse;
    for (const auto& [bucket, content] : all.buckets()) {
      const auto low = static_cast<std::uint64_t>(std::max<std::int64_t>(1, lower_end_of(bucket)));
      const int power = std::bit_width(low) - 1;
      const bool upper_half = power > 0 && (low >> (power - 1) & 1) != 0;
      coarse[2 * power + upper_half] += content.count;
    }
    json_.key("latency").begin_object();
    json_.key("quantiles").begin_array();
    for (const auto& [name, share] : kQuantiles)
      json_.begin_array().value(name).value(all.quantile(share)).end_array();
    json_.begin_array().value("longest").value(all.largest()).end_array();
    json_.end_array();
    json_.key("buckets").begin_array();
    if (!coarse.empty()) {
      for (int i = coarse.begin()->first; i <= coarse.rbegin()->first; ++i) {
        const std::int64_t power = std::int64_t{1} << (i / 2);
        const auto found = coarse.find(i);
        json_.begin_array().value(i % 2 == 0 ? power : power + power / 2);
        json_.value(found == coarse.end() ? 0 : found->second).end_array();
      }
    }
    json_.end_array();
    json_.end_object();
  }

  void write_lines() {
    json_.key("lines").begin_array();
    for (int i = 0; i < kPlaces; ++i) {
      const Histogram<>& one = summary_.ready_to_running_by_place[static_cast<std::size_t>(i)];
      const Oldest& oldest = summary_.oldest[static_cast<std::size_t>(i)];
      if (one.count() == 0 && oldest.goroutine == 0) continue;
      json_.begin_object();
      json_.member("name", text(static_cast<Place>(i))).member("count", one.count());
      json_.member("p50", one.quantile(0.5)).member("p99", one.quantile(0.99));
      json_.member("largest", std::max(one.largest(), oldest.age_ns));
      json_.key("oldest").begin_object();
      json_.member("goroutine", oldest.goroutine).member("at_ns", oldest.at_ns);
      json_.member("age_ns", oldest.age_ns);
      json_.end_object();
      json_.end_object();
    }
    json_.end_array();
  }

  void write_work() {
    json_.key("work").begin_object();
    json_.member("violations", summary_.work.violations);
    json_.key("causes").begin_array();
    for (int i = 0; i < kCauses; ++i) {
      const auto cause = static_cast<Cause>(i);
      json_.begin_object().member("name", text(cause));
      json_.member("ns", summary_.work.wasted_ns[static_cast<std::size_t>(i)]);
      json_.member("fault", cause == Cause::no_wake).end_object();
    }
    json_.end_array();
    write_list(json_, "worst", summary_.work.worst, kMostRows, [&](const Waste& waste) {
      json_.member("begin_ns", waste.begin_ns).member("end_ns", waste.end_ns);
      json_.member("proc", waste.proc).member("goroutine", waste.goroutine);
      site("site", waste.site);
      json_.member("place", text(waste.place));
    });
    json_.end_object();
  }

  void write_chain(const char* name, const Chain& chain) {
    json_.key(name).begin_object();
    json_.member("hops", chain.hops);
    json_.member("begin_ns", chain.begin_ns).member("end_ns", chain.end_ns);
    write_list(json_, "last", chain.last, kMostRows, [&](const Hop& hop) {
      json_.member("goroutine", hop.goroutine).member("ready_ns", hop.ready_ns);
      site("site", hop.site);
      json_.member("running_ns", hop.running_ns).member("queued_ns", hop.queued_ns);
      json_.member("other_ns", hop.other_ns).member("source", text(hop.source));
    });
    json_.end_object();
  }

  void write_blockers() {
    write_list(json_, "blockers", summary_.blockers, kMostRows, [&](const BlockEdge& edge) {
      site("waiter_site", edge.waiter_site);
      site("waker_site", edge.waker_site);
      json_.member("source", text(edge.source)).member("reason", reason_text(edge.reason));
      json_.member("count", edge.count).member("sum_ns", edge.sum_ns);
      json_.member("longest_ns", edge.longest_ns);
    });
  }

  void write_runs() {
    write_list(json_, "longest_runs", summary_.longest_runs, kMostRows, [&](const LongRun& run) {
      json_.member("goroutine", run.goroutine).member("proc", run.proc);
      site("site", run.site);
      json_.member("begin_ns", run.begin_ns).member("duration_ns", run.duration_ns);
    });
  }

  // Last: of all sites that were named before.
  void write_site_texts() {
    json_.key("site_texts").begin_object();
    for (std::uint64_t pc : sites_) {
      JsonWriter key;
      const std::string quoted = key.address(pc).take();
      json_.member(std::string_view(quoted).substr(1, quoted.size() - 2), site_text_(pc));
    }
    json_.end_object();
  }

  const Summary& summary_;
  const SiteText& site_text_;
  JsonWriter json_;
  std::set<std::uint64_t> sites_;
};

}  // namespace

std::string summary_json(const Summary& summary, const SiteText& site_text) {
  return SummaryWriter(summary, site_text).write();
}

std::string waits_json(const Summary& summary, const SiteText& site_text) {
  struct Group {
    std::uint64_t first = 0, count = 0, site = 0;
    std::int64_t longest_ns = 0;
  };
  std::map<std::pair<std::uint64_t, std::uint8_t>, Group> groups;
  for (const StillWaits& wait : summary.still_waiting) {
    Group& group = groups[{wait.object, wait.reason}];
    if (group.count++ == 0 || wait.for_ns > group.longest_ns) {
      group.first = wait.goroutine;
      group.site = wait.site;
    }
    group.longest_ns = std::max(group.longest_ns, wait.for_ns);
  }
  std::vector<std::pair<std::pair<std::uint64_t, std::uint8_t>, Group>> sorted(groups.begin(),
                                                                               groups.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  JsonWriter json;
  json.begin_object();
  json.member("owners_known", false);
  json.key("cycles").begin_array().end_array();
  write_list(json, "objects", sorted, kMostRows, [&](const auto& entry) {
    json.key("object").address(entry.first.first);
    json.member("reason", reason_text(entry.first.second));
    json.member("count", entry.second.count).member("longest_ns", entry.second.longest_ns);
    json.member("first", entry.second.first).member("owner", 0);
    json.member("site", site_text(entry.second.site));
  });
  std::vector<SiteSummary> suspects;
  for (const SiteSummary& one : summary.sites)
    if (one.started >= one.ended + kSuspectGrowth) suspects.push_back(one);
  write_list(json, "suspects", suspects, kMostRows, [&](const SiteSummary& one) {
    json.member("site", site_text(one.site)).member("count", one.started - one.ended);
    json.member("longest_ns", one.total[Part::blocked] / static_cast<std::int64_t>(one.started));
  });
  json.end_object();
  return json.take();
}

}  // namespace magpie::view
