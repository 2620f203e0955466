// main.cc: `./run demo`. A load that is born on one P, and how the scheduler spreads it, drawn
// live.
//
//   load       what runs: five phases, about ten seconds
//   view       a plain thread that reads magpie::stats() and shows it, by way of
//   picture    snapshots -> rows of text, row: text with colours, terminal: the screen or plain
//              lines
//   web        the same load on a page: `./run demo --web [ROUNDS]`
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <magpie/magpie.h>

#include "load.h"
#include "terminal.h"
#include "view.h"
#include "web.h"

namespace demo {
namespace {

template <class... Args>
Row line(const char* pattern, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, args...);
  Row row;
  return row.add(text);
}

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::vector<Row> summary(const Outcome& out) {
  const magpie::ProcStats& total = out.stats.total;
  std::vector<Row> rows;
  rows.push_back(line("%s goroutines ran on %zu Ps and at most %d threads",
                      with_commas(total.goroutines_ended).c_str(), out.stats.procs.size(),
                      out.most_threads));
  rows.push_back(line("stealing    %s goroutines moved by %s steals, out of %s looks at a ring",
                      with_commas(total.goroutines_stolen).c_str(),
                      with_commas(total.steals_succeeded).c_str(),
                      with_commas(total.steals_tried).c_str()));
  rows.push_back(line("spilling    %s through the global queue, taken back in %s batches",
                      with_commas(total.goroutines_spilled).c_str(),
                      with_commas(total.global_batches).c_str()));
  if (!out.busy_seconds.empty() && out.balance_seconds > 0) {
    auto [least, most] = std::minmax_element(out.busy_seconds.begin(), out.busy_seconds.end());
    int cpus = std::min(static_cast<int>(out.busy_seconds.size()), magpie::num_cpu());
    double got = out.balance_work_seconds / out.balance_seconds / cpus;
    rows.push_back(line("balance     phases 1 and 2: every P was busy %.0f to %.0f %% of %.1f s;",
                        *least / out.balance_seconds * 100, *most / out.balance_seconds * 100,
                        out.balance_seconds));
    rows.push_back(line("            the goroutines got %.0f %% of %d CPU%s%s", got * 100, cpus,
                        cpus == 1 ? "" : "s", got < 0.9 ? "; other programs had the rest" : ""));
  }
  if (out.million != 0 && out.spawn_seconds > 0) {
    rows.push_back(
        line("a million   %s started by one goroutine in %.0f ms: %.1f million a second,",
             with_commas(out.million).c_str(), out.spawn_seconds * 1000,
             static_cast<double>(out.million) / out.spawn_seconds / 1e6));
    rows.push_back(line("            %.0f bytes of memory each while they wait", out.bytes_each));
  }
  return rows;
}

int run_demo() {
  Terminal terminal;
  Progress progress;
  Outcome outcome;
  {
    View view(terminal, progress);
    // Without a time slice for those who start goroutines, so that the million all wait at the same
    // time.
    magpie::Options options{.preempt = false};
    outcome = magpie::run(options, [&] { return run_load(progress); });
  }
  terminal.leave_screen();
  for (const Row& row : summary(outcome)) terminal.print_line(row);
  if (terminal.error() == 0) return 0;
  std::fprintf(stderr, "magpie_demo: cannot write: %s\n", std::strerror(terminal.error()));
  return 1;
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::strcmp(argv[1], "--web") == 0) {
      return demo::run_web(argc > 2 ? std::atoi(argv[2]) : 0);
    }
    if (argc > 1) {
      std::fprintf(stderr, "usage: magpie_demo [--web [ROUNDS]]\n");
      return 2;
    }
    return demo::run_demo();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "magpie_demo: %s\n", error.what());
    return 1;
  }
}
