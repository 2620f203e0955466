// commands.h: what the program `magpie` can do. Each function is one command and returns its exit
// code. What goes wrong is thrown as Failure, which main() prints as one line.
#pragma once

#include <chrono>
#include <cstdint>
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
  std::string token;  // of debug::serve(); empty: it has none, or it is in the URL
  std::chrono::milliseconds interval{1000};
  int count = 0;  // 0: until it is interrupted or the process ends
};
int top(const TopOptions& options);

struct DumpOptions {
  std::string target;   // also a core file
  std::string program;  // of the core file; empty: the one that it names
  std::string token;
};
int dump(const DumpOptions& options);

struct DoctorOptions {
  std::string target;  // also a file
  std::string token;
  int seconds = 3;  // how long a process is watched
};
int doctor(const DoctorOptions& options);

// ---- the simulation
struct LabOptions {
  std::vector<std::string> loads;  // empty: all
  std::vector<std::uint32_t> procs = {1, 2, 4, 16, 64};
  std::vector<std::string> policies;  // changes of the product's policy, or "all"
  std::vector<std::string> costs;     // changes of the measured costs
  std::uint64_t seed = 1;
  std::uint64_t count = 0;
  std::int64_t work_ns = 0;
  double busy = 0.7;
  double skew = 0;
  std::uint32_t group = 0;  // Ps that are near each other
  std::string topology;     // a machine, as for MAGPIE_DEBUG=topology=
  std::uint32_t cpus = 0;   // 0: one for each P
  bool json = false;
  std::string svg;  // the file for a plot; empty: none
  std::vector<std::string> values = {"time", "steals", "p99", "cost"};  // of the plot
};
int lab_tables(const LabOptions& options);
int lab_models();
int lab_calibrate();

struct LabMeasureOptions {
  std::vector<int> procs = {1, 2, 4};
  int runs = 40;
  std::string recorded;  // a file with what an earlier call printed: nothing is measured
};
int lab_measure(const LabMeasureOptions& options);

struct LabReplayOptions {
  std::string file;
  std::vector<std::string> policies;
  std::vector<std::string> costs;
  std::uint32_t procs = 0;  // 0: as many as were traced
  std::string topology;
  std::uint32_t cpus = 0;
  std::uint64_t seed = 1;
};
int lab_replay(const LabReplayOptions& options);

}  // namespace magpie::command
