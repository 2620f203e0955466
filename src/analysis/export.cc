#include "analysis/export.h"

namespace magpie::analysis {

ExportSource source_of(trace::Reader& reader, Symbols& symbols) {
  ExportSource source;
  source.next = [&reader](Event& event) { return reader.next(event); };
  source.string = [&reader](std::uint64_t id) { return std::string(reader.string(id)); };
  source.symbol = [&symbols](std::uint64_t pc) { return symbols.find(pc); };
  source.procs = reader.info().procs;
  source.program = reader.info().program;
  source.pid = reader.info().pid;
  return source;
}

}  // namespace magpie::analysis
