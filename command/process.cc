#include "command/process.h"

#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "command/commands.h"

namespace magpie::command {

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The rest of the line that begins with `name`.
std::string field_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.compare(0, name.size(), name) == 0) return line.substr(name.size());
  return {};
}

}  // namespace

bool is_there(int pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

void require_process(int pid) {
  if (!is_there(pid)) throw Failure("there is no process " + std::to_string(pid));
}

bool catches(int pid, int signal) {
  const std::string mask =
      field_of(read_file("/proc/" + std::to_string(pid) + "/status"), "SigCgt:");
  return (std::strtoull(mask.c_str(), nullptr, 16) >> (signal - 1) & 1) != 0;
}

int threads_of(int pid) {
  return std::atoi(
      field_of(read_file("/proc/" + std::to_string(pid) + "/status"), "Threads:").c_str());
}

Throttling parse_cpu_stat(const std::string& text) {
  auto number = [&](const char* name) {
    return std::strtoull(field_of(text, name).c_str(), nullptr, 10);
  };
  Throttling result;
  result.periods = number("nr_periods ");
  result.throttled_periods = number("nr_throttled ");
  result.throttled_us = number("throttled_usec ");
  if (result.throttled_us == 0) result.throttled_us = number("throttled_time ") / 1000;  // cgroup 1
  return result;
}

Throttling throttling_of(int pid) {
  const std::string groups = read_file("/proc/" + std::to_string(pid) + "/cgroup");
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    std::string root = "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (controllers.find("cpu") == std::string::npos || controllers == "cpuset") continue;
      root += "/cpu";
    }
    // A limit may be on any group above it.
    for (;; group = group.substr(0, group.rfind('/'))) {
      const Throttling found = parse_cpu_stat(read_file(root + group + "/cpu.stat"));
      if (found.periods != 0) return found;
      if (group.empty() || group.rfind('/') == std::string::npos) break;
    }
  }
  return {};
}

}  // namespace magpie::command
