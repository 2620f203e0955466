// numbered.h: stand-ins for goroutine records, for queues that only carry the pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sched/core/g.h"

namespace magpie::sched {

// Never dereferenced.
inline G* numbered(std::size_t number) { return reinterpret_cast<G*>((number + 1) * sizeof(G)); }
inline std::size_t number_of(const G* g) {
  return reinterpret_cast<std::uintptr_t>(g) / sizeof(G) - 1;
}

inline std::vector<G*> numbered_range(std::size_t first, std::size_t end) {
  std::vector<G*> all;
  for (std::size_t i = first; i < end; ++i) all.push_back(numbered(i));
  return all;
}

inline std::vector<std::size_t> range(std::size_t first, std::size_t end) {
  std::vector<std::size_t> all;
  for (std::size_t i = first; i < end; ++i) all.push_back(i);
  return all;
}

}  // namespace magpie::sched
