// export.h: a trace in the formats of others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "analysis/states.h"
#include "analysis/symbols.h"
#include "trace/reader.h"

namespace magpie::analysis {

// Where the events and the names come from.
struct ExportSource {
  std::function<bool(Event&)> next;  // false: that was all
  std::function<std::string(std::uint64_t)> string;
  std::function<Symbol(std::uint64_t)> symbol;
  std::size_t procs = 0;
  std::string program;
  std::int64_t pid = 0;
};
ExportSource source_of(trace::Reader& reader, Symbols& symbols);

// Perfetto's protobuf: a track per P with a slice per run of a goroutine, a track for each goroutine that has
// regions, flows for wake-ups and steals, counters for queues. ui.perfetto.dev opens it.
void export_perfetto(const ExportSource& source, std::ostream& out);

// The format of Go 1.19, for `go tool trace`. Go has no word for some of ours: a goroutine that runs on
// without a P was preempted or is in a system call there.
void export_go(const ExportSource& source, std::ostream& out);

// One JSON object a line and event, for jq and scripts.
void export_json(const ExportSource& source, std::ostream& out);

}  // namespace magpie::analysis
