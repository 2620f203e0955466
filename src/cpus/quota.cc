// quota.cc: see quota.h.

#include "cpus/quota.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>
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

QuotaReader::QuotaReader(std::string root)
    : root_(std::move(root)),
      cgroup_path_(root_ + "/proc/self/cgroup"),
      mountinfo_path_(root_ + "/proc/self/mountinfo") {
  // What cannot be found now is looked for again by read(); there is nothing to report here.
  static_cast<void>(read());
}

std::optional<double> QuotaReader::read() {
  if (read_text(cgroup_path_, text_) == FileRead::kTryLater) return answer_;
  bool is_fresh = false;
  // Without sources we look each time, so that a tree mounted late is found. That is cheap where it
  // happens: a system without a cgroup tree has few mounts.
  if (!discovered_ || sources_.empty() || text_ != membership_) {
    membership_ = text_;
    if (!discover()) return answer_;
    is_fresh = true;
  }

  Pass pass = read_sources();
  if (pass == Pass::kVanished && !is_fresh) {
    if (!discover()) return answer_;
    pass = read_sources();
  }
  if (pass != Pass::kBlind) answer_ = smallest_;
  return answer_;
}

// Lists the sources for membership_. False if it could not look; then the next read() tries again.
bool QuotaReader::discover() {
  discovered_ = false;
  if (read_text(mountinfo_path_, text_) == FileRead::kTryLater) return false;
  sources_.clear();
  for (LimitFile& file : find_limit_files(membership_, text_, root_)) {
    sources_.push_back({std::move(file)});
  }
  discovered_ = true;
  ++discoveries_;
  return true;
}

QuotaReader::Pass QuotaReader::read_sources() {
  smallest_.reset();
  Pass result = Pass::kComplete;
  for (Source& source : sources_) {
    const Pass pass = read_source(source);
    if (pass == Pass::kBlind) return pass;
    if (pass == Pass::kVanished) result = pass;
  }
  return result;
}

QuotaReader::Pass QuotaReader::read_source(Source& source) {
  const bool is_v1 = source.file.kind == LimitKind::kV1;
  FileRead found = read_text(source.file.quota_path, text_);
  if (is_v1 && found == FileRead::kRead) found = read_text(source.file.period_path, period_text_);

  if (found == FileRead::kTryLater) return Pass::kBlind;
  if (found == FileRead::kMissing) {
    return std::exchange(source.was_read, false) ? Pass::kVanished : Pass::kComplete;
  }
  source.was_read = true;
  const auto quota = is_v1 ? parse_cfs(text_, period_text_) : parse_cpu_max(text_);
  if (quota) smallest_ = smallest_ ? std::min(*smallest_, *quota) : *quota;
  return Pass::kComplete;
}

}  // namespace magpie::cpus
