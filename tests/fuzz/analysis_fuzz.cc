// analysis_fuzz.cc: any bytes as a trace file, behind a good header, and all that is made of it:
// the summary, the doctor's findings, the exports, and what the view shows.
//
// The parts of each life add up to it, whatever the file says, and no view shows a P as busy for
// longer than there was time.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>

#include "analysis/analyzer.h"
#include "analysis/export.h"
#include "analysis/report.h"
#include "analysis/trace_view.h"
#include "trace/format.h"
#include "trace/reader.h"

namespace {

using namespace magpie;
using namespace magpie::analysis;

struct Nowhere : std::streambuf {
  int overflow(int c) override { return c == EOF ? 0 : c; }
  std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void summarise(trace::Reader reader, std::ostream& out) {
  AnalyzerOptions options;
  options.procs = reader.info().procs;
  options.string = [&reader](std::uint64_t id) { return reader.string(id); };
  Analyzer analyzer(options);
  for (Event event; reader.next(event);) analyzer.add(event);
  const Summary summary = analyzer.finish(reader.info().length_ns);
  const NameOfCode name = [](std::uint64_t pc) { return std::to_string(pc); };
  print_summary(out, summary, {.name = name});
  print_findings(out, examine(summary, name));
}

void export_all(const trace::Reader& first, std::ostream& out) {
  for (auto* to : {export_perfetto, export_go, export_json}) {
    trace::Reader reader = first.twin();
    ExportSource source;
    source.next = [&reader](Event& event) { return reader.next(event); };
    source.string = [&reader](std::uint64_t id) { return std::string(reader.string(id)); };
    source.symbol = [](std::uint64_t) { return Symbol{}; };
    source.procs = reader.info().procs;
    to(source, out);
  }
}

void look(const TraceView& view) {
  view.wait();
  const std::int64_t end = std::max<std::int64_t>(1, view.info().length_ns);
  for (std::int64_t size : {end, std::max<std::int64_t>(1, end / 1000)}) {
    for (const auto& spans : view.timeline(0, size, std::max<std::int64_t>(1, size / 100))) {
      for (const Span& span : spans)
        require(span.busy_ns <= span.end_ns - span.begin_ns, "busier than there was time");
    }
    (void)view.depths(0, size, 50);
    (void)view.arrows(0, size, 100);
  }
  for (const GoroutineRow& row : view.goroutines({.limit = 3}).rows)
    (void)view.goroutine(row.number, 0, end, 100);
}

// A file without a name.
class File {
 public:
  explicit File(const std::string& bytes) : fd_(memfd_create("trace", MFD_CLOEXEC)) {
    require(write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "file");
  }
  ~File() { close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  char header[trace::kFileHeaderBytes];
  trace::write_file_header(header);
  std::string bytes(header, sizeof header);
  bytes.append(reinterpret_cast<const char*>(data), size);
  std::string error;
  std::optional<trace::Reader> reader = trace::Reader::from_bytes(bytes, error);
  require(reader.has_value(), "refused");
  Nowhere nowhere;
  std::ostream out(&nowhere);
  summarise(reader->twin(), out);
  export_all(*reader, out);
  const File file(bytes);
  const std::unique_ptr<TraceView> view = TraceView::open(file.path(), error);
  require(view != nullptr, "no view");
  look(*view);
  return 0;
}
