// spawn_child.h: starts a program with the descriptors that were asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <magpie/process.h>

namespace magpie::net {

struct Spawned {
  std::shared_ptr<detail::Child> child;
  PipeStream input, output, error;  // this side of those that are pipes
};

// Throws as Process::spawn(). The child is on the list, and has no reaper yet.
Spawned spawn_child(const std::vector<std::string>& command, const ProcessOptions& options);

}  // namespace magpie::net
