// spdlog.cc: two thousand goroutines log through spdlog, and each line is whole.
//
// Its loggers with _mt lock a std::mutex for each line. That is fine in goroutines: the lock is not
// held over a wait. Do not use spdlog's %t, the thread, to tell goroutines apart: they change
// threads. A Local knows which goroutine it is.
#include <magpie/magpie.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>
#include <set>
#include <sstream>
#include <string>

using namespace magpie;

namespace {

Local<std::string> request_name;

void log(spdlog::logger& logger, const char* what) { logger.info("[{}] {}", *request_name, what); }

}  // namespace

int main() {
  constexpr int kGoroutines = 2000;
  std::ostringstream out;
  spdlog::logger logger("log", std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
  logger.set_pattern("%v");

  run([&] {
    WaitGroup all;
    for (int i = 0; i < kGoroutines; ++i) {
      all.go([&, i] {
        request_name.set("request " + std::to_string(i));
        log(logger, "begins");
        yield();  // it may go on on another thread
        log(logger, "ends");
      });
    }
    all.wait();
  });

  std::set<std::string> expected;
  for (int i = 0; i < kGoroutines; ++i) {
    for (const char* what : {"begins", "ends"})
      expected.insert("[request " + std::to_string(i) + "] " + what);
  }
  int lines = 0;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line); ++lines) {
    if (expected.erase(line) != 1) return 1;
  }
  std::printf("%d whole lines of %d goroutines\n", lines, kGoroutines);
  return expected.empty() ? 0 : 1;
}
