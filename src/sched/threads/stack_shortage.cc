#include "sched/threads/stack_shortage.h"

#include <ctime>

#include "base/check.h"
#include "base/clock.h"
#include "base/guard.h"
#include "sched/rest/deadlock.h"
#include "sched/rest/fire.h"
#include "sched/run/inside.h"
#include "sched/run/runtime.h"

namespace magpie::sched {
namespace {

// Every goroutine taken from a queue is a turn, started or not.
std::uint64_t count_turns() {
  std::uint64_t turns = 0;
  for (P* p : runtime->ps.all()) turns += p->counters.ticks.read() + p->counters.inherited.read();
  return turns;
}

bool some_goroutine_can_run() {
  bool found = false;
  runtime->records.for_each([&](G* g) {
    GState state = g->state.load(base::relaxed);
    found = found || state == GState::running || state == GState::runnable;
  });
  return found;
}

// Timers, the network and plain threads wake goroutines, which may end and give their stacks back.
bool something_can_run() {
  std::uint32_t visits = count_visits();
  if (earliest_timer_ns() != kNever || runtime->network.is_waited_for() || some_goroutine_can_run())
    return true;
  AllowedInside why("no goroutine has begun and could run, so none is stopped that holds a lock");
  return look_for_other_threads() != OtherThreads::none || count_visits() != visits;
}

}  // namespace

StackShortage::Advice StackShortage::note(std::size_t stack_size) {
  base::Guard hold(lock_);
  if (!said_) {
    said_ = true;
    base::warn(
        "no memory for another goroutine stack of %zu bytes; goroutines that have not started wait",
        stack_size);
  }
  std::int64_t now = base::now_ns();
  if (now - last_ns_ > kNewAfterNs) since_ns_ = now;
  last_ns_ = now;

  std::uint64_t others = count_turns() - ++failures_;
  if (others != turns_of_others_) tries_ = 0;
  turns_of_others_ = others;
  if (++tries_ < kTriesPerRound) return Advice::try_the_next;
  tries_ = 0;

  if (now - since_ns_ > kPatienceNs) {
    if (runtime->options.on_deadlock == DeadlockPolicy::abort && !something_can_run()) {
      base::fatal(
          "no memory for a goroutine stack of %zu bytes, and nothing else can run; start fewer "
          "goroutines that block at the same time, use a smaller Options::stack_size, or raise the "
          "limit on address space (ulimit -v) or mappings (vm.max_map_count)",
          stack_size);
    }
    since_ns_ = now;
  }
  return Advice::pause;
}

void put_off(G* g) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
  std::size_t own_size = g->extra == nullptr ? 0 : g->extra->stack_size;
  runtime->global.push(g);
  auto advice =
      runtime->stack_shortage.note(own_size != 0 ? own_size : runtime->stacks.stack_size());
  if (advice == StackShortage::Advice::pause) nanosleep(&kPause, nullptr);
}

}  // namespace magpie::sched
