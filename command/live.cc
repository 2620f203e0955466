// live.cc: `magpie top` and `magpie dump`: what a running process tells, or a core file.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>
#include <thread>

#include "analysis/core_dump.h"
#include "command/commands.h"
#include "command/debug_client.h"
#include "command/json_value.h"
#include "command/process.h"

namespace magpie::command {

namespace {

// How much a counter grew in a second.
struct Rates {
  const JsonValue& before;
  const JsonValue& now;
  double seconds;

  double of(const char* name) const {
    return seconds > 0 ? (now.of(name) - before.of(name)) / seconds : 0;
  }
};

const JsonValue& member(const JsonValue& value, const char* name) {
  static const JsonValue none;
  auto found = value.members.find(name);
  return found == value.members.end() ? none : found->second;
}

void print_stats(const JsonValue& before, const JsonValue& now) {
  const double seconds = (now.of("time_ns") - before.of("time_ns")) / 1e9;
  const JsonValue &total_before = member(before, "total"), &total = member(now, "total");
  const Rates rates{total_before, total, seconds};
  std::printf("goroutines %.0f: running %.0f, runnable %.0f, waiting %.0f, fresh %.0f\n",
              now.of("goroutines"), now.of("running"), now.of("runnable"), now.of("waiting"),
              now.of("fresh"));
  std::printf("threads %.0f: idle %.0f, searching %.0f; without a P %.0f, preempted %.0f\n",
              now.of("threads"), now.of("idle_threads"), now.of("searching_threads"),
              now.of("goroutines_without_p"), now.of("preempted_threads"));
  std::printf("global queue %.0f, timers %.0f\n", now.of("global_queue_length"), now.of("timers"));
  std::printf(
      "per second: switches %.0f, started %.0f, steals %.0f (looks %.0f), parks %.0f, "
      "wakes %.0f, polls %.0f, preemptions %.0f\n",
      rates.of("switches"), rates.of("goroutines_started"), rates.of("steals_succeeded"),
      rates.of("steals_tried"), rates.of("parks"), rates.of("wakes"), rates.of("polls"),
      rates.of("preemptions"));
  std::printf("%4s %7s %7s %10s %10s %10s\n", "P", "busy", "queue", "switches/s", "steals/s",
              "parks/s");
  const std::vector<JsonValue>& procs = member(now, "procs").items;
  const std::vector<JsonValue>& procs_before = member(before, "procs").items;
  for (std::size_t i = 0; i < procs.size(); ++i) {
    const Rates of_proc{i < procs_before.size() ? procs_before[i] : procs[i], procs[i], seconds};
    std::printf("%4.0f %6.1f%% %7.0f %10.0f %10.0f %10.0f\n", procs[i].of("id"),
                // The time of a search is taken from it when the search ends.
                std::max(0.0, 100 * of_proc.of("busy_ns") / 1e9),
                procs[i].of("queue_length") + procs[i].of("has_runnext"), of_proc.of("switches"),
                of_proc.of("steals_succeeded"), of_proc.of("parks"));
  }
  std::fflush(stdout);
}

}  // namespace

int top(const TopOptions& options) {
  const DebugClient client(options.target, options.token);
  if (client.pid() != 0) require_process(client.pid());
  JsonValue before = parse_json(client.get("/debug/stats"));
  const bool on_terminal = isatty(STDOUT_FILENO) != 0;
  for (int i = 0; options.count == 0 || i < options.count; ++i) {
    std::this_thread::sleep_for(options.interval);
    if (client.pid() != 0 && !is_there(client.pid())) {
      std::printf("process %d has ended\n", client.pid());
      return 0;
    }
    JsonValue now = parse_json(client.get("/debug/stats"));
    std::fputs(on_terminal ? "\033[H\033[2J" : i == 0 ? "" : "\n", stdout);
    print_stats(before, now);
    if (std::ferror(stdout) != 0) return 1;
    before = std::move(now);
  }
  return 0;
}

int dump(const DumpOptions& options) {
  std::error_code unknown;
  if (std::filesystem::is_regular_file(options.target, unknown)) {
    (void)analysis::dump_core(options.target, options.program, std::cout);
    return 0;
  }
  const DebugClient client(options.target, options.token);
  if (client.pid() != 0) require_process(client.pid());
  if (client.pid() == 0 || client.answers()) {
    const std::string text = client.get("/debug/goroutines");
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (text.empty() || text.back() != '\n') std::fputc('\n', stdout);
    return 0;
  }
  if (!catches(client.pid(), SIGQUIT))
    throw Failure("process " + options.target +
                  " neither calls magpie::debug::serve() nor catches SIGQUIT, which would end it");
  if (kill(client.pid(), SIGQUIT) != 0)
    throw Failure("process " + options.target + ": " + std::strerror(errno));
  std::printf("Process %s writes the dump to its own standard error.\n", options.target.c_str());
  return 0;
}

}  // namespace magpie::command
