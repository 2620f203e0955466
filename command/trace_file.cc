#include "command/trace_file.h"

#include <algorithm>

#include "analysis/analyzer.h"
#include "command/commands.h"

namespace magpie::command {

trace::Reader open_trace(const std::string& path) {
  std::string error;
  std::optional<trace::Reader> reader = trace::Reader::open(path, error);
  if (reader) return std::move(*reader);
  if (error.find(path) == std::string::npos) error = path + ": " + error;
  throw Failure(error);
}

ReadTrace read_trace(const std::string& path) {
  trace::Reader reader = open_trace(path);
  analysis::AnalyzerOptions options;
  options.procs = reader.info().procs;
  options.string = [&reader](std::uint64_t id) { return reader.string(id); };
  analysis::Analyzer analyzer(options);
  trace::Event event;
  while (reader.next(event)) analyzer.add(event);
  ReadTrace result;
  result.summary = analyzer.finish();
  result.summary.lost = std::max(result.summary.lost, reader.lost());
  result.symbols = analysis::Symbols::make(reader.modules());
  result.info = reader.info();
  result.repairs = reader.repairs();
  return result;
}

}  // namespace magpie::command
