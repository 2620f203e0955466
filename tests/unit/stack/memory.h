// memory.h: what the kernel says about memory of this process.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "stack/stack.h"

namespace magpie::stack {

// Pages of [from, to) that are backed by memory. Both are rounded down to pages.
inline std::size_t resident_pages(const void* from, const void* to) {
  const std::size_t page = page_size();
  const auto begin = reinterpret_cast<std::uintptr_t>(from) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(to) / page * page;
  std::vector<unsigned char> present((end - begin) / page);
  if (mincore(reinterpret_cast<void*>(begin), end - begin, present.data()) != 0) return 0;
  std::size_t count = 0;
  for (const unsigned char each : present) count += each & 1;
  return count;
}

// Mappings of this process; the kernel allows vm.max_map_count.
inline std::size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

inline std::size_t largest_count_of_mappings() {
  std::ifstream file("/proc/sys/vm/max_map_count");
  std::size_t count = 65'530;
  file >> count;
  return count;
}

// Writes one byte in each page of [from, to).
inline void touch(std::byte* from, std::byte* to) {
  for (std::byte* at = from; at < to; at += page_size()) {
    *const_cast<volatile std::byte*>(at) = std::byte{1};
  }
}

}  // namespace magpie::stack
