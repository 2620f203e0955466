// fuzz_main.h: a fuzzer whose inputs are tried inside the runtime. Include it last, after
//   class World { void run(std::string_view input); void look_around(); };
// in magpie::fuzz. The runtime runs beside libFuzzer's thread, with one World that lives as long as
// the program.
#pragma once

#include <magpie/magpie.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "fuzz/fail.h"

namespace magpie::fuzz {
namespace {

// libFuzzer's thread sends, the runtime's main goroutine does. Never destroyed: exit() may run
// beside them.
Chan<std::string_view>& inputs = *new Chan<std::string_view>();
Chan<void>& done = *new Chan<void>();
std::thread& runtime = *new std::thread();

void end() {
  inputs.close();
  runtime.join();
}

void start() {
  runtime = std::thread([] {
    magpie::run(Options{.procs = 2}, [] {
      World world;
      while (std::optional<std::string_view> input = inputs.recv()) {
        current_input = *input;
        world.run(*input);
        done.send();
      }
      world.look_around();
    });
  });
  std::atexit(end);
}

}  // namespace
}  // namespace magpie::fuzz

// What is never freed is found at the end, when the runtime has gone: before, a goroutine's stack
// may hold the only pointer to something, and LeakSanitizer does not look there.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static char no_check_of_each_input[] = "-detect_leaks=0";
  static std::vector<char*> arguments(*argv, *argv + *argc);
  arguments.insert(arguments.begin() + 1, no_check_of_each_input);
  *argc = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  *argv = arguments.data();

  magpie::fuzz::start();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  magpie::fuzz::inputs.send({reinterpret_cast<const char*>(data), size});
  magpie::fuzz::done.recv();
  return 0;
}
