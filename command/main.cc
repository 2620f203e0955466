// main.cc: the command line of `magpie`.
//
// Exit codes: 0 it worked; 1 it did not, and one line on standard error says why; 2 the command
// line is wrong. `magpie run` ends as its program does.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>

#include "command/commands.h"

namespace magpie::command {
namespace {

constexpr int kWrongUse = 2;
constexpr std::string_view kSays = "magpie: ";

// A full disk shows only when the buffers are written.
void require_printed() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout)
    throw Failure(std::string("standard output: ") + std::strerror(errno));
}

class CommandLine {
 public:
  CommandLine() : app_("Shows what programs with the Magpie runtime do.", "magpie") {
    app_.require_subcommand(1);
    add_run();
    add_trace();
    add_live();
#if MAGPIE_HAS_LAB
    add_lab();
#endif
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app_.exit(error);  // --help
      std::fprintf(stderr, "magpie: %s (see: magpie --help)\n", error.what());
      return kWrongUse;
    }
    try {
      const int code = action_();
      require_printed();
      return code;
    } catch (const std::exception& error) {
      std::string_view what = error.what();
      if (what.starts_with(kSays)) what.remove_prefix(kSays.size());  // the library's own errors
      std::fprintf(stderr, "magpie: %.*s\n", static_cast<int>(what.size()), what.data());
      return 1;
    }
  }

 private:
  void does(CLI::App* command, std::function<int()> action) {
    command->callback([this, action = std::move(action)] { action_ = action; });
  }

  void add_run() {
    CLI::App* command = app_.add_subcommand("run", "Run a program, trace it, and show what it did");
    command->add_option("-o,--output", run_.output, "The trace file")->capture_default_str();
    command->add_flag("--view", run_.view, "Open the view instead of the summary");
    command->add_flag("-q,--quiet", run_.quiet, "Only write the trace");
    command->add_option("program", run_.program, "-- PROGRAM ARGUMENTS...")->required();
    command->positionals_at_end();
    does(command, [this] { return command::run(run_); });
  }

  void add_trace() {
    CLI::App* trace = app_.add_subcommand("trace", "Look at a trace file");
    trace->require_subcommand(1);

    CLI::App* summary = trace->add_subcommand("summary", "What the trace says, as text");
    summary->add_option("file", summary_.file, "The trace file")->required();
    summary->add_option("--rows", summary_.rows, "Rows of each table")
        ->check(CLI::Range(0, 1'000'000))
        ->capture_default_str();
    does(summary, [this] { return trace_summary(summary_); });

    CLI::App* to_other = trace->add_subcommand("export", "Write the trace in another format");
    to_other->add_option("file", export_.file, "The trace file")->required();
    to_other->add_option("--format", export_.format, "perfetto, go (go tool trace) or json (lines)")
        ->required()
        ->check(CLI::IsMember({"perfetto", "go", "json"}));
    to_other->add_option("-o,--output", export_.output, "Where to; - is standard output");
    does(to_other, [this] { return trace_export(export_); });

    CLI::App* view = trace->add_subcommand("view", "Show the trace in a browser");
    view->add_option("file", view_.file, "The trace file")->required();
    view->add_option("--listen", view_.listen, "Address of the server")->capture_default_str();
    does(view, [this] { return trace_view(view_); });
  }

  // The environment keeps it out of the list of processes, which others can read.
  static void add_token(CLI::App* command, std::string& token) {
    command->add_option("--token", token, "The token of debug::serve(), if it has one")
        ->envname("MAGPIE_DEBUG_TOKEN");
  }

  void add_live() {
    CLI::App* live = app_.add_subcommand("top", "What a process does now, again and again");
    live->add_option("target", top_.target, "A process number, or the URL of debug::serve()")
        ->required();
    live->add_option("-n,--count", top_.count, "How often; 0 is until interrupted")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    live->add_option("-d,--delay", delay_ms_, "Milliseconds between two")
        ->capture_default_str()
        ->check(CLI::Range(10, 3'600'000));
    add_token(live, top_.token);
    does(live, [this] {
      top_.interval = std::chrono::milliseconds(delay_ms_);
      return top(top_);
    });

    CLI::App* goroutines =
        app_.add_subcommand("dump", "All goroutines of a process, with their stacks");
    goroutines
        ->add_option("target", dump_.target,
                     "A process number, the URL of debug::serve(), or a core file")
        ->required();
    goroutines->add_option("--program", dump_.program,
                           "Of a core file: the program, if it is no longer where it was");
    add_token(goroutines, dump_.token);
    does(goroutines, [this] { return dump(dump_); });

    CLI::App* examine = app_.add_subcommand("doctor", "What hurts, and what to change");
    examine->add_option("target", doctor_.target, "A trace file, a process number or a URL")
        ->required();
    examine->add_option("--seconds", doctor_.seconds, "How long a process is watched")
        ->capture_default_str()
        ->check(CLI::Range(1, 60));
    add_token(examine, doctor_.token);
    does(examine, [this] { return doctor(doctor_); });
  }

#if MAGPIE_HAS_LAB
  void add_lab() {
    CLI::App* lab = app_.add_subcommand("lab", "Simulate the scheduler's policy, and others");
    lab->require_subcommand(1);

    CLI::App* tables = lab->add_subcommand("run", "Loads under policies, as a table or a plot");
    tables->add_option("--load", lab_.loads, "Names of loads; without it all")->delimiter(',');
    tables->add_option("--procs", lab_.procs, "Numbers of Ps, 1 to 4096")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    tables->add_option("--policy", lab_.policies,
                       "Changes of the policy, as amount=one or amount=one,end=newest; once for "
                       "each policy; all: every alternative");
    tables->add_option("--cost", lab_.costs, "Changes of the costs in ns, as wake=5000");
    tables->add_option("--seed", lab_.seed, "Of all chance")->capture_default_str();
    tables->add_option("--count", lab_.count, "Goroutines, requests or rounds");
    tables->add_option("--work", lab_.work_ns, "Of one of them, in ns");
    tables->add_option("--busy", lab_.busy, "The part of all Ps that open loads need")
        ->capture_default_str()
        ->check(CLI::Range(0.01, 2.0));
    tables->add_option("--skew", lab_.skew, "at-home: how much more the first half of the Ps gets")
        ->check(CLI::Range(0.0, 0.99));
    CLI::Option* group =
        tables->add_option("--group", lab_.group, "Ps that are near each other; 0: all are");
    tables->add_option("--topology", lab_.topology, "A machine, as \"node:2 l3:2 core:8 pu:2\"")
        ->excludes(group);
    tables->add_option("--cpus", lab_.cpus, "CPUs; if fewer than Ps, threads take turns");
    tables->add_flag("--json", lab_.json, "JSON instead of a table");
    tables->add_option("--svg", lab_.svg, "Write a plot to this file too");
    tables->add_option("--values", lab_.values, "What the plot shows")
        ->delimiter(',')
        ->capture_default_str();
    does(tables, [this] { return lab_tables(lab_); });

    CLI::App* models = lab->add_subcommand("models", "Published models, and what the lab gives");
    does(models, [] { return lab_models(); });

    CLI::App* calibrate = lab->add_subcommand("calibrate", "Measure the costs on this machine");
    does(calibrate, [] { return lab_calibrate(); });

    CLI::App* measure =
        lab->add_subcommand("measure", "Run loads on the real runtime, beside the simulation");
    measure->add_option("--procs", lab_measure_.procs, "Numbers of Ps")
        ->delimiter(',')
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    measure->add_option("--runs", lab_measure_.runs, "Runs of each load")
        ->capture_default_str()
        ->check(CLI::Range(1, 10'000));
    measure->add_option("--recorded", lab_measure_.recorded,
                        "Simulate again what an earlier call printed into this file");
    does(measure, [this] { return lab_measure(lab_measure_); });

    CLI::App* replay =
        lab->add_subcommand("replay", "What a traced program would have done under other policies");
    replay->add_option("file", lab_replay_.file, "The trace file")->required();
    replay->add_option("--policy", lab_replay_.policies, "As for lab run; all: every alternative");
    replay->add_option("--cost", lab_replay_.costs, "Changes of the costs in ns");
    replay->add_option("--procs", lab_replay_.procs, "Ps; without it as many as were traced")
        ->check(CLI::Range(1, 4096));
    replay->add_option("--topology", lab_replay_.topology, "A machine, as for lab run");
    replay->add_option("--cpus", lab_replay_.cpus, "CPUs; if fewer than Ps, threads take turns");
    replay->add_option("--seed", lab_replay_.seed, "Of all chance")->capture_default_str();
    does(replay, [this] { return lab_replay(lab_replay_); });
  }
#endif

  CLI::App app_;
  std::function<int()> action_;
  RunOptions run_;
  SummaryOptions summary_;
  ExportOptions export_;
  ViewOptions view_;
  TopOptions top_;
  int delay_ms_ = 1000;
  DumpOptions dump_;
  DoctorOptions doctor_;
#if MAGPIE_HAS_LAB
  LabOptions lab_;
  LabMeasureOptions lab_measure_;
  LabReplayOptions lab_replay_;
#endif
};

}  // namespace
}  // namespace magpie::command

int main(int argc, char** argv) { return magpie::command::CommandLine().run(argc, argv); }
