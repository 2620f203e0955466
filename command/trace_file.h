// trace_file.h: a trace file that was read to its end, for the commands.
#pragma once

#include <memory>
#include <string>

#include "analysis/summary.h"
#include "analysis/symbols.h"
#include "trace/reader.h"

namespace magpie::command {

// Throws Failure with the name of the file.
trace::Reader open_trace(const std::string& path);

struct ReadTrace {
  analysis::Summary summary;
  std::unique_ptr<analysis::Symbols> symbols;
  trace::Info info;
  std::uint64_t repairs = 0;
};
ReadTrace read_trace(const std::string& path);

}  // namespace magpie::command
