// process.h: what the kernel tells about another process.
#pragma once

namespace magpie::command {

bool is_there(int pid);

// Throws Failure if there is no such process.
void require_process(int pid);

// Whether it has a handler for the signal.
bool catches(int pid, int signal);

int threads_of(int pid);

}  // namespace magpie::command
