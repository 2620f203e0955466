// fork_stop_test.cc: the signal that stops a thread arrives in the child of a fork().

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "sched/current.h"
#include "sched/run/runtime.h"
#include "support/rt_test.h"

namespace magpie::sched {
namespace {

std::atomic<bool> sends_stop{false};

// Before the runtime's own handler, as it is registered before: ThreadSanitizer keeps signals back,
// and delivers them at such a moment.
[[gnu::constructor(101)]] void register_first() {
  pthread_atfork(nullptr, nullptr, [] {
    if (sends_stop) (void)raise(SIGURG);
  });
}

TEST(ForkStop, AStopThatWasMeantForTheParentDoesNotHoldTheChild) {
  int exit_code = run(Options{.procs = 1}, [] {
    Chan<int> result(1);
    go([=] {
      M* m = current_m();
      while (!m->grip.is_taken()) usleep(100);  // main waits for the P
      m->signalled.store(true, base::relaxed);
      sends_stop = true;
      pid_t child = fork();
      sends_stop = false;
      if (child == 0) _exit(7);
      m->signalled.store(false, base::relaxed);
      int status = 0;
      bool has_ended = support::eventually([&] { return waitpid(child, &status, WNOHANG) != 0; });
      if (!has_ended) kill(child, SIGKILL);
      result.send(has_ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    });
    while (result.size() == 0) yield();
    return result.recv().value();
  });
  EXPECT_EQ(exit_code, 7);
}

}  // namespace
}  // namespace magpie::sched
