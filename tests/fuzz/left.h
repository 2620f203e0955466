// left.h: what a fuzzed program holds: goroutines and sockets. It must not grow.
#pragma once

#include <magpie/magpie.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>

#include "fuzz/fail.h"

namespace magpie::fuzz {

struct Left {
  std::size_t goroutines = num_goroutines();
  std::size_t sockets = count_sockets();

  bool operator==(const Left&) const = default;
  std::string text() const {
    return std::to_string(goroutines) + " goroutines, " + std::to_string(sockets) + " sockets";
  }

  // libFuzzer opens files, and pipes to a program that knows the names of functions.
  static std::size_t count_sockets() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code closed;
      std::string what = std::filesystem::read_symlink(entry.path(), closed).string();
      if (what.starts_with("socket:")) ++count;
    }
    return count;
  }
};

// Waits until no more goroutines than these are there: all else has been set up and has ended.
inline void wait_for_goroutines(std::size_t count) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (num_goroutines() != count) {
    if (std::chrono::steady_clock::now() > limit)
      fail("there are " + std::to_string(num_goroutines()) + " goroutines at rest");
    yield();
  }
}

// Waits until there is no more left than before.
inline void expect_left(const Left& before) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  for (Left now; !(now == before); now = Left()) {
    if (std::chrono::steady_clock::now() > limit)
      fail("there were " + before.text() + "; there are " + now.text());
    yield();
  }
}

}  // namespace magpie::fuzz
