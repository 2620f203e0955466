// format.h: printf into a string.
#pragma once

#include <cstdio>
#include <string>

namespace magpie::analysis {

template <class... Args>
std::string format(const char* how, Args... args) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, how, args...);
  return buffer;
}

}  // namespace magpie::analysis
