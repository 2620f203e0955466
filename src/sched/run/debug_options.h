// debug_options.h: what the environment asks of the runtime:
// MAGPIE_DEBUG=schedtrace=1000,scheddetail=1,preempt=off,chaos=1,slow=10ms,topology=node:2 core:16
#pragma once

#include <cstdint>
#include <string>

namespace magpie::sched {

struct DebugOptions {
  std::int64_t schedtrace_ns = 0;  // time between two lines; 0: none
  bool scheddetail = false;        // a line per P, M and G too
  bool preempt = true;
  std::uint64_t chaos_seed = 0;  // see chaos.h; 0: none
  std::int64_t slow_ns = 0;      // see dump/watcher.h; 0: none
  std::string topology;          // see cpus/topology.h; empty: the machine's

  // Throws std::invalid_argument for an item that it does not understand.
  static DebugOptions from_environment();
};

}  // namespace magpie::sched
