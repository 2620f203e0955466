#include <ctime>

#include <magpie/time.h>

#include "base/clock.h"
#include "sched/cancel_source.h"
#include "sched/entry.h"
#include "sched/park.h"
#include "sched/timers.h"

namespace magpie::detail {
namespace {

using namespace sched;

// On the sleeper's stack.
struct SleepTimer : timer::Timer {
  explicit SleepTimer(G* its) : Timer(wake), g(its) {}

  static void* wake(timer::Timer& timer) {
    G* g = static_cast<SleepTimer&>(timer).g;
    timer.finished();
    return g;
  }

  G* g;
};

bool begin_sleep(M* m, G*, void*) {
  release_held_timers(m);
  return true;
}

void sleep_thread(DeadlineNs deadline) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  timespec until{.tv_sec = static_cast<time_t>(deadline / kSecond),
                 .tv_nsec = static_cast<long>(deadline % kSecond)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }  // a signal interrupted it
}

}  // namespace

void sleep_until(DeadlineNs deadline) {
  Entry entry;
  M* m = entry.m();
  if (m == nullptr) {
    sleep_thread(deadline);
    return;
  }
  if (deadline == kNoDeadline) {
    park(
        WaitReason::sleep, [](M*, G*, void*) { return true; }, nullptr);
    return;
  }
  SleepTimer sleeper(m->current);
  arm_and_hold(m, sleeper, deadline);
  park(WaitReason::sleep, begin_sleep, nullptr);
}

bool sleep_with(DeadlineNs deadline, const Context& context, std::error_code& error) {
  return wait_with(context, error, [deadline](CancelSource* source) {
    if (deadline <= base::now_ns()) return true;
    if (source != nullptr) return source->sleep(deadline, WaitReason::sleep);
    sleep_until(deadline);
    return true;
  });
}

}  // namespace magpie::detail
