// commands.h: what the program `magpie` can do. Each function is one command and returns its exit code.
// What goes wrong is thrown as Failure, which main() prints as one line.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace magpie::command {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct SummaryOptions {
  std::string file;
  std::size_t rows = 10;
};
int trace_summary(const SummaryOptions& options);

struct ExportOptions {
  std::string file;
  std::string format;  // perfetto, go or json
  std::string output;  // empty: the file's name with an ending; "-": standard output
};
int trace_export(const ExportOptions& options);

struct ViewOptions {
  std::string file;
  std::string listen = "127.0.0.1:0";
};
int trace_view(const ViewOptions& options);

struct RunOptions {
  std::vector<std::string> program;
  std::string output = "magpie.trace";
  bool view = false;   // open the view afterwards, instead of the summary
  bool quiet = false;  // only write the trace
};
int run(const RunOptions& options);

// Targets are the number of a process or a URL.
struct TopOptions {
  std::string target;
  std::chrono::milliseconds interval{1000};
  int count = 0;  // 0: until it is interrupted or the process ends
};
int top(const TopOptions& options);

int dump(const std::string& target);

struct DoctorOptions {
  std::string target;  // also a file
  int seconds = 3;     // how long a process is watched
};
int doctor(const DoctorOptions& options);

}  // namespace magpie::command
