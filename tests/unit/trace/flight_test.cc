// The flight recorder when its world is against it: no memory, and signals that come too late.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/trace.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/os_faults.h"
#include "trace/reader.h"

namespace magpie::trace {
namespace {

class Folder {
 public:
  Folder() { EXPECT_NE(mkdtemp(path_), nullptr); }
  ~Folder() {
    std::remove(file().c_str());
    rmdir(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file() const { return std::string(path_) + "/trace"; }

 private:
  char path_[32] = "/tmp/magpie-flight-XXXXXX";
};

// An empty trace that says nothing of it would be believed.
TEST(TraceFlight, ASnapshotWithoutMemorySaysSoAndLeavesTheFileAlone) {
  Folder folder;
  run([&] {
    start("", {.flight = true});
    for (int i = 0; i < 1000; ++i) log("much", std::string(500, 'x'));
    {
      support::MapFaults faults(support::Refuse::everything, 200'000);
      EXPECT_THROW(snapshot(folder.file()), std::runtime_error);
      EXPECT_GT(faults.refusals(), 0);
    }
    EXPECT_NE(access(folder.file().c_str(), F_OK), 0);
    snapshot(folder.file());
    EXPECT_TRUE(stop());
  });
  std::string error;
  std::optional<Reader> reader = Reader::open(folder.file(), error);
  ASSERT_TRUE(reader.has_value()) << error;
  int logs = 0;
  for (Event event; reader->next(event);) logs += event.kind == Kind::log ? 1 : 0;
  EXPECT_EQ(logs, 1000);
}

// A handler that began before the trace ended runs on, on a thread that the kernel keeps waiting.
// ThreadSanitizer sees it touch what the trace has given back.
TEST(TraceFlight, EndsWhileSignalsAskForSnapshots) {
  Folder folder;
  auto* handler = std::signal(SIGUSR2, SIG_IGN);
  std::atomic<bool> is_over{false};
  std::thread asker([&] {
    while (!is_over) kill(getpid(), SIGUSR2);
  });
  for (int i = 0; i < 30; ++i) {
    start(folder.file(), {.flight = true, .signal = SIGUSR2});
    run([] { spawn([] { log("some", "words"); }).join(); });
    EXPECT_TRUE(stop());
  }
  is_over = true;
  asker.join();
  std::signal(SIGUSR2, handler);
}

// The thread of the next trace is not woken for a snapshot that nobody asked it for.
TEST(TraceFlight, ASignalAfterTheEndAsksTheNextTraceForNothing) {
  Folder folder;
  auto* handler = std::signal(SIGUSR2, SIG_IGN);
  start(folder.file(), {.flight = true, .signal = SIGUSR2});
  struct sigaction its;
  sigaction(SIGUSR2, nullptr, &its);
  EXPECT_TRUE(stop());
  its.sa_handler(SIGUSR2);
  start(folder.file(), {.flight = true});
  run([] {});
  EXPECT_TRUE(stop());
  EXPECT_NE(access(folder.file().c_str(), F_OK), 0);
  std::signal(SIGUSR2, handler);
}

}  // namespace
}  // namespace magpie::trace
