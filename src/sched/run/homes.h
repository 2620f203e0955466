// homes.h: gives each P its home (cpus/homes.h), and does it again when the CPUs of the process, or
// the number of Ps, change.
//
// Homes change only while the world is stopped. So an M that holds a P may read all homes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic.h"
#include "cpus/homes.h"
#include "cpus/topology.h"

namespace magpie::sched {

// All but settle() allocate and read files. So the world goes on, or has not begun, and the caller
// is the thread that has the right to stop it.
class Homes {
 public:
  // `synthetic` is a machine for tests, see cpus::parse_topology(); empty: the real one.
  Homes(std::string synthetic, cpus::Cores cores)
      : synthetic_(std::move(synthetic)), cores_(cores) {}

  // Looks up the CPUs of the calling thread, which must not be pinned. True: they are not those of
  // the look before.
  bool look();

  // One home for each P. Makes what the nodes need. Throws std::bad_alloc.
  [[nodiscard]] std::vector<cpus::Home> plan(std::uint32_t procs);

  // The world is stopped, or has not begun.
  void settle(std::span<const cpus::Home> homes);

  // The node of the CPU on which the caller runs now, for plain threads.
  std::uint32_t node_here() const { return has_nodes_.load(base::relaxed) ? node_here_slow() : 0; }

 private:
  static constexpr std::size_t kMostCpus = 1024;  // the others count as of the first node

  cpus::Topology read() const;
  std::uint32_t node_here_slow() const;

  const std::string synthetic_;
  const cpus::Cores cores_;
  std::vector<int> numbers_;                // of the CPUs
  std::optional<cpus::Topology> topology_;  // none: not read yet
  base::Atomic<bool> has_nodes_{false};     // atomic, a hint: more than one
  // atomic, a hint: an old answer only makes memory a far one
  std::array<base::Atomic<std::uint8_t>, kMostCpus> node_of_cpu_{};
};

}  // namespace magpie::sched
