// valve_test.cc: knots that must not be, tied on purpose: somebody waits inside the runtime for a
// lock of a stopped goroutine.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "base/os.h"
#include "sched/entry.h"
#include "sched/run/inside.h"
#include "sched/run/runtime.h"
#include "sched/taking/taking.h"
#include "support/at_procs.h"
#include "support/let_signals_in.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::eventually;
using support::spin_until;

// An allocator with one lock that the runtime calls from inside.
class OneLockForMemory {
 public:
  OneLockForMemory() : real_(base::os().map) {
    asked = false;
    base::os().map = map;
  }
  ~OneLockForMemory() { base::os().map = real_; }
  OneLockForMemory(const OneLockForMemory&) = delete;
  OneLockForMemory& operator=(const OneLockForMemory&) = delete;

  static inline std::mutex lock;
  static inline std::atomic<bool> asked;  // somebody waits for the lock, or has it

 private:
  static void* map(void* address, std::size_t length, int protection, int flags, int fd,
                   off_t offset) {
    asked = true;
    sched::AllowedInside allowed("it is what the valve is for");
    std::lock_guard hold(lock);
    return mmap(address, length, protection, flags, fd, offset);
  }

  decltype(base::Os::map)::Function* real_;
};

class Valve : public support::AtProcs {};
INSTANTIATE_TEST_SUITE_P(AtProcs, Valve, support::kFewProcs, testing::PrintToStringParamName());

// Returns how often the valve had to open.
std::uint64_t tie_a_knot() {
  OneLockForMemory memory;
  std::atomic<bool> holds{false}, stop{false};
  WaitGroup all;
  all.go([&] {
    std::lock_guard hold(OneLockForMemory::lock);
    holds = true;
    spin_until(OneLockForMemory::asked);  // now somebody waits for it
  });
  while (!holds) yield();
  for (int i = 0; i < procs() - 1; ++i) all.go([&] { spin_until(stop); });
  // On a machine with several nodes the first P of a node asks for memory. Then the holder ends
  // early, and nobody need be stopped.
  EXPECT_TRUE(eventually([] { return stats().preempted_threads != 0 || OneLockForMemory::asked; }));
  while (!OneLockForMemory::asked) {
    all.go([&stop] {
      while (!stop) yield();
    });
  }
  stop = true;
  all.wait();
  return stats().valve_openings;
}

TEST_P(Valve, AStoppedHolderOfALockThatIsWaitedForInsideRunsOn) {
  std::uint64_t openings = 0;
  // With more Ps, or on a busy machine, the holder may be at work at that moment.
  for (int round = 0; round < (procs() == 1 ? 50 : 5) && openings == 0; ++round)
    run(Options{.procs = procs()}, [&openings] { openings = tie_a_knot(); });
  EXPECT_TRUE(openings != 0 || procs() > 1);
}

// At the limit on threads sysmon looks for a goroutine that brings its own thread, and may have to
// put it back. The valve lets out whoever is in the stopped line; one that waits there with a
// ThreadLock would never go on.
TEST(ValveAndThreadLock, AGoroutineWithAThreadLockThatGotNoPAfterAllIsNotTakenForAStoppedOne) {
  run(Options{.procs = 1}, [] {
    Chan<int> values(1);
    std::atomic<bool> may_send{false}, sent{false}, done{false};
    go([&] {
      ThreadLock lock;
      values.recv();
      done = true;
    });
    EXPECT_TRUE(eventually([] { return stats().waiting == 1; }));
    std::thread sender([&] {
      spin_until(may_send);
      values.send(1);
      sent = true;
    });
    std::size_t stopped;
    bool found;
    {
      sched::Entry entry;  // nobody takes the P meanwhile, and nobody else takes the goroutine
      may_send = true;
      spin_until(sent);
      sched::Heir heir = sched::choose_bound();
      found = !heir.is_nobody();
      sched::put_back(heir);
      stopped = sched::runtime->global.stopped();
    }
    EXPECT_TRUE(found);
    EXPECT_EQ(stopped, 0U);
    EXPECT_TRUE(eventually([&] { return done.load(); }));
    blocking([&] { sender.join(); });
  });
}

}  // namespace
}  // namespace magpie
