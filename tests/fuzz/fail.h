// fail.h: how a fuzzer that runs inside the runtime says that something is wrong.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace magpie::fuzz {

// What is tried now. libFuzzer does not write it to a file after abort(): the runtime has that
// signal, to report it.
inline std::string_view current_input;

[[noreturn]] inline void fail(const std::string& why) {
  const std::string path = "failed-input-" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << current_input;
  std::fprintf(stderr, "%s; the input is in %s\n", why.c_str(), path.c_str());
  std::abort();
}

}  // namespace magpie::fuzz
