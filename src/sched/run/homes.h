// homes.h: gives each P its home (cpus/homes.h), and does it again when the CPUs of the process, or
// the number of Ps, change.
//
// Homes change only while the world is stopped. So an M that holds a P may read all homes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpus/homes.h"
#include "cpus/topology.h"

namespace magpie::sched {

// All but settle() allocate and read files, so they need a world that goes on, or has not begun;
// by the thread that has the right to stop it.
class Homes {
 public:
  // `synthetic` is a machine for tests, see cpus::parse_topology(); empty: the real one.
  Homes(std::string synthetic, cpus::Cores cores)
      : synthetic_(std::move(synthetic)), cores_(cores) {}

  // Looks up the CPUs of the calling thread, which must not be pinned. True: they are not those of
  // the look before.
  bool look();

  // One home for each P.
  [[nodiscard]] std::vector<cpus::Home> plan(std::uint32_t procs);

  // The world is stopped, or has not begun.
  static void settle(std::span<const cpus::Home> homes);

 private:
  cpus::Topology read() const;

  const std::string synthetic_;
  const cpus::Cores cores_;
  std::vector<int> numbers_;                // of the CPUs
  std::optional<cpus::Topology> topology_;  // none: not read yet
};

}  // namespace magpie::sched
