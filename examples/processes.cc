// processes.cc: child processes: their output line by line, all of it at once, and those that take
// too long.
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <magpie/process.h>

#include <cstdio>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

// Reads while the child writes.
int count_lines() {
  Process child = Process::spawn({"seq", "1000"}, {.output = Stdio::pipe()});
  int lines = 0;
  net::BufferedReader reader(child.output());
  for (std::string_view line : reader.lines()) lines += line.empty() ? 0 : 1;
  return child.wait().success() ? lines : -1;
}

// Writes and reads at the same time.
std::string in_order(std::string text) {
  Process sort = Process::spawn({"sort"}, {.input = Stdio::pipe(), .output = Stdio::pipe()});
  return sort.communicate(text).output;
}

// Ends it when its time is up.
ExitStatus not_for_long() {
  Process sleeper = Process::spawn({"sleep", "1000"});
  Context context = Context::background().with_timeout(20ms);
  return sleeper.wait_or_kill(context, 5s);
}

int main() {
  return run([] {
    const int lines = count_lines();
    const std::string sorted = in_order("pear\napple\nfig\n");
    const ExitStatus ended = not_for_long();
    std::printf("%d lines; sorted:\n%sthe sleeper: %s\n", lines, sorted.c_str(),
                ended.to_string().c_str());

    std::error_code error;
    (void)Process::spawn({"no-such-program"}, {}, error);
    std::printf("no-such-program: %s\n", error.message().c_str());
    const bool right =
        lines == 1000 && sorted == "apple\nfig\npear\n" && ended.signal() == SIGTERM && error;
    return right ? 0 : 1;
  });
}
