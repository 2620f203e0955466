// trace.cc: `magpie trace summary`, `export` and `view`.

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "analysis/export.h"
#include "analysis/report.h"
#include "command/commands.h"
#include "command/trace_file.h"

#if MAGPIE_HAS_VIEW
#include <magpie/debug_server.h>
#include <magpie/magpie.h>
#include <magpie/signals.h>
#endif

namespace magpie::command {

int trace_summary(const SummaryOptions& options) {
  const ReadTrace trace = read_trace(options.file);
  std::cout << trace.info.program << " (process " << trace.info.pid << "): ";
  analysis::ReportOptions report;
  report.rows = options.rows;
  report.name = [&](std::uint64_t pc) { return trace.symbols->text(pc); };
  analysis::print_summary(std::cout, trace.summary, report);
  if (!trace.info.is_whole)
    std::cout << "\nThe trace was not ended properly, or bytes of it are damaged.\n";
  if (trace.repairs != 0)
    std::cout << "\n" << trace.repairs << " events contradicted others and were believed.\n";
  return 0;
}

int trace_export(const ExportOptions& options) {
  trace::Reader reader = open_trace(options.file);
  auto symbols = analysis::Symbols::make(reader.modules());
  const analysis::ExportSource source = analysis::source_of(reader, *symbols);
  const std::string output =
      !options.output.empty()
          ? options.output
          : options.file + (options.format == "perfetto" ? ".pftrace" : "." + options.format);
  std::error_code not_there;
  if (std::filesystem::equivalent(output, options.file, not_there))
    throw Failure(output + ": is the trace itself");
  std::ofstream file;
  if (output != "-") {
    file.open(output, std::ios::binary | std::ios::trunc);
    if (!file) throw Failure(output + ": cannot be written");
  }
  std::ostream& out = output == "-" ? std::cout : file;
  if (options.format == "perfetto")
    analysis::export_perfetto(source, out);
  else if (options.format == "go")
    analysis::export_go(source, out);
  else
    analysis::export_json(source, out);
  out.flush();
  if (!out) throw Failure(output + ": writing failed");
  if (output != "-") std::printf("%s\n", output.c_str());
  return 0;
}

int trace_view(const ViewOptions& options) {
  open_trace(options.file);
#if MAGPIE_HAS_VIEW
  return magpie::run([&] {
    debug::Server server = debug::serve_trace(options.file, options.listen);
    std::printf("%s\nOpen it in a browser. Ctrl-C ends the view.\n", server.url().c_str());
    std::fflush(stdout);
    Signals interrupts{SIGINT, SIGTERM};
    (void)interrupts.channel().recv();
    return 0;
  });
#else
  throw Failure("this build has no view: it was built without the library magpie_view");
#endif
}

}  // namespace magpie::command
