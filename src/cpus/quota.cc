// quota.cc: see quota.h.

#include "cpus/quota.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <tuple>
#include <utility>

#include "cpus/file_text.h"

namespace magpie::cpus {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Cuts the next word off the front of `rest`; empty at the end.
std::string_view take_word(std::string_view& rest) {
  const auto begin = std::find_if_not(rest.begin(), rest.end(), is_blank);
  const auto end = std::find_if(begin, rest.end(), is_blank);
  const std::string_view word(begin, end);
  rest = std::string_view(end, rest.end());
  return word;
}

// A number that does not fit is as good as none: as a quota it would limit nobody.
std::optional<std::int64_t> parse_positive(std::string_view word) {
  std::int64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc{} || stop != end || number <= 0) return std::nullopt;
  return number;
}

std::optional<double> ratio(std::string_view quota, std::string_view period) {
  const auto quota_us = parse_positive(quota);
  const auto period_us = parse_positive(period);
  if (!quota_us || !period_us) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

// As parse_positive(), but 0 is fine.
std::optional<std::uint64_t> parse_count(std::string_view word) {
  std::uint64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

// None if one of the numbers shrank: the kernel counts a cgroup that was made anew.
std::optional<Throttling> growth(const Throttling& before, const Throttling& now) {
  if (now.periods < before.periods || now.throttled_periods < before.throttled_periods ||
      now.throttled_ns < before.throttled_ns) {
    return std::nullopt;
  }
  return Throttling{now.periods - before.periods, now.throttled_periods - before.throttled_periods,
                    now.throttled_ns - before.throttled_ns};
}

bool is_worse(const Throttling& a, const Throttling& b) {
  return std::tie(a.throttled_ns, a.throttled_periods, a.periods) >
         std::tie(b.throttled_ns, b.throttled_periods, b.periods);
}

std::string stat_path_beside(const std::string& quota_path) {
  return quota_path.substr(0, quota_path.rfind('/')) + "/cpu.stat";
}

}  // namespace

std::optional<double> parse_cpu_max(std::string_view text) {
  const std::string_view quota = take_word(text);
  const std::string_view period = take_word(text);
  if (!take_word(text).empty()) return std::nullopt;
  return ratio(quota, period);  // "max" is not a number, so it is no limit
}

std::optional<double> parse_cfs(std::string_view quota, std::string_view period) {
  const std::string_view quota_word = take_word(quota);
  const std::string_view period_word = take_word(period);
  if (!take_word(quota).empty() || !take_word(period).empty()) return std::nullopt;
  return ratio(quota_word, period_word);
}

std::optional<Throttling> parse_cpu_stat(std::string_view text) {
  constexpr std::uint64_t kMostMicroseconds = UINT64_MAX / 1000;
  Throttling found;
  bool counts_periods = false;
  for (;;) {
    const std::string_view name = take_word(text);
    if (name.empty()) break;
    const auto number = parse_count(take_word(text));
    if (!number) return std::nullopt;
    if (name == "nr_periods") found.periods = *number;
    if (name == "nr_throttled") {
      found.throttled_periods = *number;
      counts_periods = true;
    }
    if (name == "throttled_time") found.throttled_ns = *number;  // v1
    if (name == "throttled_usec") found.throttled_ns = 1000 * std::min(*number, kMostMicroseconds);
  }
  if (!counts_periods) return std::nullopt;
  return found;
}

QuotaReader::QuotaReader(std::string root) : QuotaReader(root, root + "/proc/self") {}

QuotaReader QuotaReader::of_process(int pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  return QuotaReader(directory + "/root", directory);
}

QuotaReader::QuotaReader(std::string root, std::string process_directory)
    : root_(std::move(root)),
      cgroup_path_(process_directory + "/cgroup"),
      mountinfo_path_(process_directory + "/mountinfo") {
  // What cannot be found now is looked for again by read(); there is nothing to report here.
  static_cast<void>(read());
}

std::optional<double> QuotaReader::read() {
  if (read_text(cgroup_path_, text_) == FileRead::try_later) return answer_;
  bool is_fresh = false;
  // Without sources we look each time, so that a tree mounted late is found. That is cheap where it
  // happens: a system without a cgroup tree has few mounts.
  if (!discovered_ || sources_.empty() || text_ != membership_) {
    membership_ = text_;
    if (!discover()) return answer_;
    is_fresh = true;
  }

  Pass pass = read_sources();
  if (pass == Pass::vanished && !is_fresh) {
    if (!discover()) return answer_;
    pass = read_sources();
  }
  if (pass != Pass::blind) answer_ = smallest_;
  return answer_;
}

// Lists the sources for membership_. False if it could not look; then the next read() tries again.
bool QuotaReader::discover() {
  discovered_ = false;
  if (read_text(mountinfo_path_, text_) == FileRead::try_later) return false;
  sources_.clear();
  for (LimitFile& file : find_limit_files(membership_, text_, root_)) {
    std::string stat_path = stat_path_beside(file.quota_path);
    sources_.push_back({.file = std::move(file), .stat_path = std::move(stat_path)});
  }
  discovered_ = true;
  ++discoveries_;
  return true;
}

QuotaReader::Pass QuotaReader::read_sources() {
  smallest_.reset();
  worst_ = {};
  Pass result = Pass::complete;
  for (Source& source : sources_) {
    const Pass pass = read_source(source);
    if (pass != Pass::complete) result = pass;
    if (pass == Pass::blind) break;
  }
  // Also after a pass that is not complete: its sources have moved their counts on.
  throttling_.periods += worst_.periods;
  throttling_.throttled_periods += worst_.throttled_periods;
  throttling_.throttled_ns += worst_.throttled_ns;
  return result;
}

QuotaReader::Pass QuotaReader::read_source(Source& source) {
  const bool is_v1 = source.file.kind == LimitKind::kV1;
  FileRead found = read_text(source.file.quota_path, text_);
  if (is_v1 && found == FileRead::read) found = read_text(source.file.period_path, period_text_);

  if (found == FileRead::try_later) return Pass::blind;
  if (found == FileRead::missing) {
    return std::exchange(source.was_read, false) ? Pass::vanished : Pass::complete;
  }
  source.was_read = true;
  const auto quota = is_v1 ? parse_cfs(text_, period_text_) : parse_cpu_max(text_);
  if (quota) smallest_ = smallest_ ? std::min(*smallest_, *quota) : *quota;
  // A cgroup whose quota has just been lifted is counted a last time.
  if (quota || source.counted) count_throttling(source);
  if (!quota) source.counted.reset();
  return Pass::complete;
}

// A cpu.stat that cannot be read leaves the count as it is: what is missed now is seen later.
void QuotaReader::count_throttling(Source& source) {
  if (read_text(source.stat_path, text_) != FileRead::read) return;
  const auto now = parse_cpu_stat(text_);
  if (!now) return;
  if (source.counted) {
    const auto grown = growth(*source.counted, *now);
    if (grown && is_worse(*grown, worst_)) worst_ = *grown;
  }
  source.counted = now;
}

}  // namespace magpie::cpus
