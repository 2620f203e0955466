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

}  // namespace magpie::command
