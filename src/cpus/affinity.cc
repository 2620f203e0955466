// affinity.cc: see affinity.h.

#include "cpus/affinity.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <vector>

namespace magpie::cpus {
namespace {

constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;
constexpr std::size_t kFirstCpus = 1024;
// Far beyond any kernel's limit. It ends the search where EINVAL has another cause, for example a
// system call filter that answers so.
constexpr std::size_t kMostCpus = std::size_t{1} << 20;

int ask_kernel(std::size_t bytes, unsigned long* mask) {
  // Pid 0 is the calling thread. The cast is what the CPU_ALLOC macros do.
  if (sched_getaffinity(0, bytes, reinterpret_cast<cpu_set_t*>(mask)) == 0) return 0;
  return errno;
}

// None: no mask could be had.
std::optional<std::vector<unsigned long>> read_mask(AffinityCall call) {
  for (std::size_t cpus = kFirstCpus; cpus <= kMostCpus; cpus *= 2) {
    std::vector<unsigned long> mask(cpus / kWordBits, 0);
    const int error = call(mask.size() * sizeof(unsigned long), mask.data());
    if (error == EINVAL) continue;
    if (error != 0) return std::nullopt;
    return mask;
  }
  return std::nullopt;
}

}  // namespace

int count_affinity(AffinityCall call) {
  const auto mask = read_mask(call);
  if (!mask) return 0;
  int count = 0;
  for (unsigned long word : *mask) count += std::popcount(word);
  return count;
}

std::vector<int> affinity_list() {
  std::vector<int> cpus;
  const auto mask = read_mask(&ask_kernel);
  if (!mask) return cpus;
  for (std::size_t cpu = 0; cpu < mask->size() * kWordBits; ++cpu)
    if (((*mask)[cpu / kWordBits] >> cpu % kWordBits & 1) != 0)
      cpus.push_back(static_cast<int>(cpu));
  return cpus;
}

int affinity_cpus() {
  const int count = count_affinity(&ask_kernel);
  if (count > 0) return count;
  // A sandbox may forbid the call. The number of online CPUs is the best guess left.
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

const AffinityCalls& kernel_affinity_calls() {
  static constexpr AffinityCalls kCalls = {
      .get = [](cpu_set_t& mask) { return sched_getaffinity(0, sizeof mask, &mask) == 0; },
      .set = [](const cpu_set_t& mask) { return sched_setaffinity(0, sizeof mask, &mask) == 0; }};
  return kCalls;
}

void use_cpus_again(const cpu_set_t& before, const AffinityCalls& calls) {
  cpu_set_t all, now;
  std::memset(&all, 0xff, sizeof all);
  const bool is_as_before = calls.set(all) && calls.get(now) && CPU_EQUAL(&now, &before);
  if (!is_as_before) calls.set(before);
}

}  // namespace magpie::cpus
