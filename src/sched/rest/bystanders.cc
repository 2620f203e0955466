#include "sched/rest/bystanders.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <magpie/runtime.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "sched/current.h"
#include "sched/rest/rest.h"
#include "sched/visit.h"
#include "timer/timer.h"

namespace magpie::sched {
namespace {

base::Atomic<int> bystanders{0};  // atomic, a count: of threads that have promised
constinit thread_local int promises = 0;

constexpr int kMostEnding = 16;
base::Atomic<pid_t> ending[kMostEnding] = {};  // atomic, a hint: 0: free
base::Atomic<bool> more_are_ending{false};     // atomic, a hint: there was no place for some

// atomic, a count: of threads that end or promise. An M reads it before it counts threads
base::Atomic<std::uint32_t> changes{0};
constexpr std::int64_t kGoodForNs = 10'000'000;
// atomic, a hint: until when others count as seen, if there was no change since
base::Atomic<std::int64_t> others_until_ns{0};
base::Atomic<std::uint32_t> others_at_change{0};

constexpr std::int64_t kFirstLookGapNs = 1'000'000, kLastLookGapNs = 10'000'000'000;
// atomic, a hint: when to look again, and after how long the time after that
base::Atomic<std::int64_t> deadlock_look_ns{timer::kNever};
base::Atomic<std::int64_t> look_gap_ns{kFirstLookGapNs};
base::Atomic<std::uint64_t> looked_at_turns{0};

[[gnu::noinline]] bool is_there(pid_t thread) {
  return syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH;
}

void note_number(pid_t mine) {
  for (auto& place : ending) {
    if (place.load(base::relaxed) == mine) return;
  }
  for (auto& place : ending) {
    pid_t free = 0;
    if (place.compare_exchange_strong(free, mine, base::relaxed, base::relaxed)) return;
    if (!is_there(free) &&
        place.compare_exchange_strong(free, mine, base::relaxed, base::relaxed)) {
      return;
    }
  }
  more_are_ending.store(true, base::relaxed);
}

}  // namespace

int count_bystanders() { return bystanders.load(base::seq_cst); }
bool is_bystander() { return promises != 0; }

void note_ending_thread() {
  note_number(gettid());
  look_gap_ns.store(kFirstLookGapNs, base::relaxed);
  changes.fetch_add(1, base::seq_cst);
  let_another_look_for_deadlock();
}

bool some_are_ending() {
  bool some = more_are_ending.load(base::relaxed);
  for (auto& place : ending) {
    pid_t thread = place.load(base::relaxed);
    if (thread == 0) continue;
    if (is_there(thread)) {
      some = true;
    } else {
      (void)place.compare_exchange_strong(thread, 0, base::relaxed, base::relaxed);
    }
  }
  return some;
}

// A thread that does not end for seconds is given up: the destructors of its thread_locals wait.
void look_for_deadlock_again(std::uint64_t turns) {
  if (looked_at_turns.load(base::relaxed) != turns) {
    looked_at_turns.store(turns, base::relaxed);
    look_gap_ns.store(kFirstLookGapNs, base::relaxed);
  }
  std::int64_t gap = look_gap_ns.load(base::relaxed);
  bool looks = gap <= kLastLookGapNs;
  deadlock_look_ns.store(looks ? base::now_ns() + gap : timer::kNever, base::relaxed);
  if (looks) {
    look_gap_ns.store(2 * gap, base::relaxed);
  } else {
    more_are_ending.store(false, base::relaxed);
  }
}

std::uint32_t changes_of_threads() { return changes.load(base::seq_cst); }

void note_others(std::uint32_t change) {
  others_at_change.store(change, base::relaxed);
  others_until_ns.store(base::now_ns() + kGoodForNs, base::relaxed);
}

bool others_were_seen() {
  return others_at_change.load(base::relaxed) == changes_of_threads() &&
         base::now_ns() < others_until_ns.load(base::relaxed);
}

std::int64_t next_look_for_deadlock_ns() { return deadlock_look_ns.load(base::relaxed); }
void forget_next_look_for_deadlock() {
  if (next_look_for_deadlock_ns() != timer::kNever)
    deadlock_look_ns.store(timer::kNever, base::relaxed);
}

PromisePause::PromisePause() {
  if (promises != 0) bystanders.fetch_sub(1, base::seq_cst);
}
PromisePause::~PromisePause() {
  if (promises != 0) bystanders.fetch_add(1, base::seq_cst);
}

void forget_bystanders() {
  bystanders.store(promises != 0 ? 1 : 0, base::relaxed);
  for (auto& place : ending) place.store(0, base::relaxed);
  more_are_ending.store(false, base::relaxed);
  others_until_ns.store(0, base::relaxed);
  deadlock_look_ns.store(timer::kNever, base::relaxed);
}

}  // namespace magpie::sched

namespace magpie {

using namespace sched;

Bystander::Bystander() noexcept : promises_(current_m() == nullptr) {
  if (!promises_ || promises++ != 0) return;
  bystanders.fetch_add(1, base::seq_cst);
  changes.fetch_add(1, base::seq_cst);
  if (Visit visit; visit) let_another_look_for_deadlock();
}

Bystander::~Bystander() {
  if (promises_ && --promises == 0) bystanders.fetch_sub(1, base::seq_cst);
}

}  // namespace magpie
