#include "trace/meta.h"

namespace magpie::trace {
namespace {

void append(std::string& out, const Instant& instant) {
  append_number(out, instant.ticks);
  append_number(out, static_cast<std::uint64_t>(instant.ns));
}

void append(std::string& out, const Totals& totals) {
  append_number(out, totals.size());
  for (const auto& [name, value] : totals) {
    append_string(out, name);
    append_number(out, value);
  }
}

Instant instant_from(Input& input) {
  Instant instant;
  instant.ticks = input.number();
  instant.ns = static_cast<std::int64_t>(input.number());
  return instant;
}

// Of a file that may be damaged. Ours have some dozens.
constexpr std::size_t kMostTotalsRead = 1024;

Totals totals_from(Input& input) {
  Totals totals;
  for (std::uint64_t left = input.number(); left != 0 && !input.is_broken(); --left) {
    std::string name(input.string());
    std::uint64_t value = input.number();
    if (!input.is_broken() && totals.size() < kMostTotalsRead)
      totals.emplace_back(std::move(name), value);
  }
  return totals;
}

}  // namespace

void append_number(std::string& out, std::uint64_t value) {
  std::uint8_t bytes[kNumberBytes];
  std::uint8_t* end = put_number(bytes, value);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
}

void append_string(std::string& out, std::string_view text) {
  text = text.substr(0, kLongestString);
  append_number(out, text.size());
  out.append(text);
}

void append_module(std::string& out, std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                   std::string_view path, std::string_view build_id) {
  append_number(out, start);
  append_number(out, end);
  append_number(out, offset);
  append_string(out, path);
  append_string(out, build_id);
}

std::string encode(const BeginPayload& begin) {
  std::string out;
  append(out, begin.origin);
  append(out, begin.now);
  append_number(out, begin.ticks_per_second);
  append_number(out, static_cast<std::uint64_t>(begin.wall_ns));
  append_number(out, static_cast<std::uint64_t>(begin.pid));
  append_number(out, begin.procs);
  append_number(out, begin.anchor);
  append_string(out, begin.program);
  append_number(out, kKinds);
  for (const KindInfo& kind : kKindInfo) append_string(out, kind.args);
  append(out, begin.totals);
  return out;
}

std::string encode(const EndPayload& end) {
  std::string out;
  append(out, end.now);
  append_number(out, end.lost);
  append_number(out, end.is_last ? 1 : 0);
  append(out, end.totals);
  return out;
}

namespace {

constexpr std::size_t kMostKindsRead = 256;  // a kind is a byte

}  // namespace

bool decode(Input input, BeginPayload& begin) {
  begin.origin = instant_from(input);
  begin.now = instant_from(input);
  begin.ticks_per_second = input.number();
  begin.wall_ns = static_cast<std::int64_t>(input.number());
  begin.pid = static_cast<std::int64_t>(input.number());
  begin.procs = static_cast<std::uint32_t>(input.number());
  begin.anchor = input.number();
  begin.program = input.string();
  begin.kinds.clear();
  std::uint64_t kinds = input.number();
  for (; kinds != 0 && !input.is_broken(); --kinds) {
    const std::string_view args = input.string();
    if (begin.kinds.size() < kMostKindsRead) begin.kinds.emplace_back(args);
  }
  begin.totals = totals_from(input);
  return !input.is_broken();
}

bool decode(Input input, EndPayload& end) {
  end.now = instant_from(input);
  end.lost = input.number();
  end.is_last = input.number() != 0;
  end.totals = totals_from(input);
  return !input.is_broken();
}

}  // namespace magpie::trace
