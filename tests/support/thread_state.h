// thread_state.h: what the kernel says a thread of this process is doing.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace magpie::support {

// True while the thread sleeps in the kernel, as opposed to running or waiting for a CPU.
inline bool thread_sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');  // the name may hold anything
  return name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] == 'S';
}

}  // namespace magpie::support
