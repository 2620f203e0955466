#include "sched/run/debug_options.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cpus/topology.h"

namespace magpie::sched {
namespace {

[[noreturn]] void refuse(std::string_view item) {
  throw std::invalid_argument(
      "magpie: MAGPIE_DEBUG: \"" + std::string(item) +
      "\" is not understood; it knows schedtrace=MILLISECONDS, scheddetail=0|1, preempt=on|off, "
      "chaos=SEED (a number; 0: off), slow=MILLISECONDSms, topology=LEVELS (node:2 core:16)");
}

// False: it is no number, or more follows.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

void read_item(DebugOptions& options, std::string_view item) {
  std::size_t equals = item.find('=');
  if (equals == std::string_view::npos) refuse(item);
  std::string_view key = item.substr(0, equals), value = item.substr(equals + 1);
  if (key == "schedtrace") {
    std::int64_t ms = 0;
    constexpr std::int64_t kMostMs = 1'000'000'000;
    if (!read_number(value, ms) || ms < 0 || ms > kMostMs) refuse(item);
    options.schedtrace_ns = ms * 1'000'000;
  } else if (key == "slow") {
    std::int64_t ms = 0;
    constexpr std::int64_t kMostMs = 1'000'000;
    if (value.ends_with("ms")) value.remove_suffix(2);
    if (!read_number(value, ms) || ms < 0 || ms > kMostMs) refuse(item);
    options.slow_ns = ms * 1'000'000;
  } else if (key == "chaos") {
    if (!read_number(value, options.chaos_seed)) refuse(item);
  } else if (key == "topology") {
    if (!cpus::parse_topology(value)) refuse(item);
    options.topology = value;
  } else if (key == "scheddetail" && (value == "0" || value == "1")) {
    options.scheddetail = value == "1";
  } else if (key == "preempt" && (value == "on" || value == "off")) {
    options.preempt = value == "on";
  } else {
    refuse(item);
  }
}

}  // namespace

DebugOptions DebugOptions::from_environment() {
  DebugOptions options;
  const char* text = std::getenv("MAGPIE_DEBUG");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    std::size_t comma = rest.find(',');
    read_item(options, rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return options;
}

}  // namespace magpie::sched
