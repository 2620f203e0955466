// meta.h: the payloads of begin, end and modules blocks. Written rarely, by threads that may
// allocate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event.h"
#include "trace/format.h"
#include "trace/reader.h"

namespace magpie::trace {

// One instant on two clocks: the CPU's counter and CLOCK_MONOTONIC.
struct Instant {
  std::uint64_t ticks = 0;
  std::int64_t ns = 0;
};

struct BeginPayload {
  Instant origin;  // when the trace began
  Instant now;     // when the generation began
  std::uint64_t ticks_per_second = 0;  // an estimate; two instants far apart tell better
  std::int64_t wall_ns = 0;            // the wall clock at the origin
  std::int64_t pid = 0;
  std::uint32_t procs = 0;
  std::uint64_t anchor = 0;  // program counters are stored as distances from it
  std::string program;
  std::vector<std::string> kinds;  // the arguments of each kind, see KindInfo
  Totals totals;                   // sums of stats()
};

struct EndPayload {
  Instant now;
  std::uint64_t lost = 0;  // events, since the trace began
  bool is_last = true;     // of the trace
  Totals totals;
};

std::string encode(const BeginPayload& begin);
std::string encode(const EndPayload& end);
[[nodiscard]] bool decode(Input input, BeginPayload& begin);
[[nodiscard]] bool decode(Input input, EndPayload& end);

void append_number(std::string& out, std::uint64_t value);
void append_string(std::string& out, std::string_view text);
void append_module(std::string& out, std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                   std::string_view path, std::string_view build_id);

}  // namespace magpie::trace
