#include "view/dump_json.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "view/json.h"

namespace magpie::view {
namespace {

constexpr std::size_t kMostGroups = 500, kMostObjects = 200;

std::string code_text(const CodePlace& place) {
  std::string text = place.function;
  if (text.empty() && !place.module.empty()) {
    JsonWriter address;
    const std::string quoted = address.address(place.offset).take();
    text = place.module + "+" + quoted.substr(1, quoted.size() - 2);
  }
  if (!place.file.empty()) text += " " + place.file + ":" + std::to_string(place.line);
  return text;
}

bool has(std::string_view whole, std::string_view part) {
  return whole.find(part) != std::string_view::npos;
}

bool fits(const GoroutineInfo& group, std::string_view text) {
  if (text.empty()) return true;
  if (has(group.name, text) || has(group.state, text) || has(group.reason, text) ||
      has(group.object_text, text) || has(code_text(group.body), text)) {
    return true;
  }
  return std::any_of(group.ids.begin(), group.ids.end(),
                     [text](std::uint64_t id) { return std::to_string(id) == text; }) ||
         std::any_of(group.frames.begin(), group.frames.end(),
                     [text](const CodePlace& place) { return has(code_text(place), text); });
}

void write_group(JsonWriter& json, const GoroutineInfo& group) {
  json.begin_object();
  json.member("count", group.count).member("name", group.name).member("state", group.state);
  json.member("reason", group.reason).member("object", group.object_text);
  json.member("longest_ns", group.waited_for.count()).member("site", code_text(group.body));
  json.member("started_by", group.started_by).member("thread", group.thread);
  json.key("ids").begin_array();
  for (std::uint64_t id : group.ids) json.value(id);
  json.end_array();
  json.key("stack").begin_array();
  for (const CodePlace& place : group.frames) json.value(code_text(place));
  json.end_array();
  json.end_object();
}

// Goroutines that wait for the same thing.
struct Waiters {
  const GoroutineInfo* first = nullptr;
  std::size_t count = 0;
  std::int64_t longest_ns = -1;
};

std::vector<Waiters> by_object(const GoroutineDump& dump) {
  std::map<std::string, Waiters> found;
  for (const GoroutineInfo& group : dump.groups) {
    if (group.state != "waiting") continue;
    Waiters& waiters = found[group.reason + "\n" + group.object_text];
    if (waiters.first == nullptr) waiters.first = &group;
    waiters.count += group.count;
    waiters.longest_ns = std::max<std::int64_t>(waiters.longest_ns, group.waited_for.count());
  }
  std::vector<Waiters> sorted;
  for (const auto& [key, waiters] : found) sorted.push_back(waiters);
  std::sort(sorted.begin(), sorted.end(),
            [](const Waiters& a, const Waiters& b) { return a.count > b.count; });
  if (sorted.size() > kMostObjects) sorted.resize(kMostObjects);
  return sorted;
}

void write_cycles(JsonWriter& json, const GoroutineDump& dump) {
  std::unordered_map<std::uint64_t, const GoroutineInfo*> by_id;
  for (const GoroutineInfo& group : dump.groups)
    for (std::uint64_t id : group.ids) by_id[id] = &group;
  json.key("cycles").begin_array();
  for (const std::vector<std::uint64_t>& cycle : dump.cycles) {
    json.begin_array();
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto found = by_id.find(cycle[i]);
      const GoroutineInfo* info = found == by_id.end() ? nullptr : found->second;
      json.begin_object().member("goroutine", cycle[i]);
      json.member("reason", info == nullptr ? "" : info->reason);
      json.member("object", info == nullptr ? "" : info->object_text);
      json.member("owner", cycle[(i + 1) % cycle.size()]).end_object();
    }
    json.end_array();
  }
  json.end_array();
}

}  // namespace

std::string goroutines_json(const GoroutineDump& dump, std::string_view text) {
  JsonWriter json;
  std::size_t total = 0, groups = 0, left_out = 0;
  json.begin_object();
  json.key("groups").begin_array();
  for (const GoroutineInfo& group : dump.groups) {
    if (!fits(group, text)) continue;
    total += group.count;
    if (++groups <= kMostGroups) {
      write_group(json, group);
    } else {
      left_out += group.count;
    }
  }
  json.end_array();
  json.member("total", total).member("left_out", left_out).end_object();
  return json.take();
}

void GrowthWatch::look(const GoroutineDump& dump) {
  for (auto& [body, seen] : seen_) seen.now = 0;
  for (const GoroutineInfo& group : dump.groups) {
    if (group.state != "waiting") continue;
    const auto [entry, is_new] = seen_.try_emplace(code_text(group.body));
    Seen& seen = entry->second;
    seen.now += group.count;
    if (is_new) seen.first = group.count;
    seen.longest_ns = std::max<std::int64_t>(seen.longest_ns, group.waited_for.count());
  }
}

std::string live_waits_json(const GoroutineDump& dump, const GrowthWatch& growth) {
  JsonWriter json;
  json.begin_object();
  json.member("owners_known", true).member("stuck_behind", dump.stuck_behind);
  write_cycles(json, dump);
  json.key("objects").begin_array();
  for (const Waiters& waiters : by_object(dump)) {
    const GoroutineInfo& first = *waiters.first;
    json.begin_object();
    json.member("object", first.object_text).member("reason", first.reason);
    json.member("count", waiters.count).member("longest_ns", waiters.longest_ns);
    json.member("first", first.id).member("owner", first.waits_for);
    json.member("site", code_text(first.body));
    json.end_object();
  }
  json.end_array();
  json.key("suspects").begin_array();
  for (const auto& [body, seen] : growth.seen()) {
    if (!seen.is_suspect()) continue;
    json.begin_object().member("site", body).member("count", seen.now);
    json.member("longest_ns", seen.longest_ns).end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace magpie::view
