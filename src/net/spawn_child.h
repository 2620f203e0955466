// spawn_child.h: starts a program with the descriptors that were asked for.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <magpie/process.h>

namespace magpie::net {

struct Spawned {
  pid_t id;
  PipeStream input, output, error;  // this side of those that are pipes
};

// Throws as Process::spawn(). The process is still to be watched.
Spawned spawn_child(const std::vector<std::string>& command, const ProcessOptions& options);

}  // namespace magpie::net
