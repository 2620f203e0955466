// child_settings_test.cc: what child processes inherit from a pinned thread with punctual timers.

#include <magpie/magpie.h>
#include <magpie/process.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "cpus/affinity.h"
#include "support/net_test.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;

int timer_slack() { return prctl(PR_GET_TIMERSLACK); }

// Runs `f` on a thread that is pinned and has a timer slack of its own.
template <class F>
void run_pinned_and_punctual(F f) {
  run(Options{.procs = 1, .pin = true}, [&] {
    sleep_for(1ms);  // by the only M, which has the timer duty
    EXPECT_EQ(cpus::affinity_list().size(), 1u);
    f();
    EXPECT_EQ(cpus::affinity_list().size(), 1u);
  });
}

TEST(ChildSettings, AForkedChildHasTheSettingsFromBeforeTheRun) {
  const std::vector<int> cpus = cpus::affinity_list();
  const int slack = timer_slack();
  run_pinned_and_punctual([&] {
    EXPECT_NE(timer_slack(), slack);
    const pid_t child = fork();
    if (child == 0)
      _exit((cpus::affinity_list() == cpus ? 0 : 1) + (timer_slack() == slack ? 0 : 2));
    int status = 0;
    EXPECT_EQ(blocking([&] { return waitpid(child, &status, 0); }), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_NE(timer_slack(), slack);
  });
}

std::string output_of(const std::vector<std::string>& command) {
  Process process = Process::spawn(command, {.output = Stdio::pipe()});
  std::string text = support::read_all(process.output());
  (void)process.wait();
  return text;
}

TEST(ChildSettings, AStartedProgramHasTheSettingsFromBeforeTheRun) {
  const std::vector<std::string> question = {
      "/bin/sh", "-c", "grep Cpus_allowed: /proc/self/status; cat /proc/self/timerslack_ns"};
  std::string outside, inside;
  run(Options{.procs = 2}, [&] { outside = output_of(question); });
  run_pinned_and_punctual([&] { inside = output_of(question); });
  EXPECT_EQ(inside, outside);
  EXPECT_NE(inside, "");
}

}  // namespace
}  // namespace magpie
