// process.h: what the kernel tells about another process.
#pragma once

#include <cstdint>
#include <string>

namespace magpie::command {

bool is_there(int pid);

// Throws Failure if there is no such process.
void require_process(int pid);

// Whether it has a handler for the signal.
bool catches(int pid, int signal);

int threads_of(int pid);

// How its cgroup is held back by a CPU quota. All 0 when it has none.
struct Throttling {
  std::uint64_t periods = 0, throttled_periods = 0, throttled_us = 0;
};
Throttling throttling_of(int pid);

// As throttling_of() reads it from the text of a cpu.stat file.
Throttling parse_cpu_stat(const std::string& text);

}  // namespace magpie::command
