#include "sched/taking/valve.h"

#include <gtest/gtest.h>

#include "sched/core/m.h"

namespace magpie::sched {
namespace {

// What the thread that is looked at does while the kernel is asked for it; it is asleep then.
M* looked_at;
void (*meanwhile)(M& m);
bool asleep(pid_t) {
  meanwhile(*looked_at);
  return true;
}

bool is_knot(void (*does)(M& m)) {
  M m;  // inside the runtime
  looked_at = &m;
  meanwhile = does;
  return sleeps_for_others(m, asleep);
}

TEST(Valve, ASleepInsideIsAKnot) {
  EXPECT_TRUE(is_knot([](M&) {}));
}

TEST(Valve, ASleepOfTheRuntimesOwnThatBeginsDuringALookIsNoKnot) {
  EXPECT_FALSE(is_knot([](M& m) { m.own_sleeps.store(1, base::relaxed); }));
  EXPECT_FALSE(is_knot([](M& m) { m.own_sleeps.store(2, base::relaxed); }));  // and ends
}

TEST(Valve, ASleepOfAThreadThatLeavesDuringALookIsNoKnot) {
  EXPECT_FALSE(is_knot([](M& m) { m.grip.leave(); }));
}

}  // namespace
}  // namespace magpie::sched
