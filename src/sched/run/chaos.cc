#include "sched/run/chaos.h"

#include <sched.h>

#include <ctime>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/other_thread.h"
#include "sched/core/queues.h"
#include "sched/run/runtime.h"
#include "sched/taking/bound.h"
#include "sched/taking/free_cpu.h"

namespace magpie::sched {
namespace {

constexpr std::int64_t kLatestNs = 100'000;
constexpr std::uint32_t kMostPauses = 200;
constexpr std::int64_t kPartsPerWait = 4;  // of the time; a program must come to its end

// For sysmon.
constexpr std::int64_t kLongestMoodNs = 20'000'000;
constexpr std::int64_t kSlowSleepNs = 10'000'000;
constexpr std::int64_t kHastyGapNs = 40'000;
constexpr std::uint32_t kMostRounds = 32;
constexpr int kMostPausesInside = 500;

}  // namespace

// SplitMix64 (Steele, Lea, Flood 2014): a counter, mixed.
std::uint32_t Chaos::below(std::uint32_t n) {
  std::uint64_t z = state_.fetch_add(0x9E3779B97F4A7C15u, base::relaxed);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) % n);
}

void Chaos::sleep_up_to(std::int64_t ns) {
  timespec time{.tv_sec = 0, .tv_nsec = below(static_cast<std::uint32_t>(ns))};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time,
                  // leaves errno alone; a signal may end it early
                  nullptr);
}

void Chaos::disturb_now() {
  std::uint32_t what = below(16);
  if (what < 8) return;
  if (what < 12) {
    for (std::uint32_t pauses = below(kMostPauses); pauses != 0; --pauses) base::cpu_relax();
    return;
  }
  // Beside busy processes even a yield may take tens of milliseconds.
  std::int64_t begin = base::now_ns();
  if (begin < next_wait_ns_.load(base::relaxed)) return;
  if (what < 15) {
    sched_yield();
  } else {
    sleep_up_to(kLatestNs);
  }
  std::int64_t end = base::now_ns();
  next_wait_ns_.store(end + kPartsPerWait * (end - begin), base::relaxed);
}

void Chaos::muddle_now(P* p) {
  p->ticks_to_look = static_cast<std::int32_t>(below(8));
  p->turns_to_clock = static_cast<std::int32_t>(below(64));
  if (below(2) == 0) p->end_chain();
  p->turns_to_exact_look = below(8);
  p->slice_over = runtime->options.preempt && below(4) == 0;
}

void Chaos::scatter_now(M* m) {
  // At the end, as a spill does. At the front they would overtake the others again and again.
  while (G* g = m->p->queue.pop()) runtime->global.push(g);
  wake_searcher(m);
}

Chaos::Mood Chaos::mood(std::int64_t now_ns) {
  if (!is_on()) return Mood::usual;
  if (now_ns >= mood_until_ns_) {
    mood_until_ns_ = now_ns + below(kLongestMoodNs);
    constexpr Mood kMoods[] = {Mood::usual, Mood::slow, Mood::hasty, Mood::hasty};
    mood_ = kMoods[below(4)];
  }
  return mood_;
}

// Here, and not with the rest of sysmon: it is no part of sysmon's task.
void Sysmon::be_chaotic() {
  Chaos& chaos = runtime->chaos;
  switch (chaos.mood(now_ns_)) {
    case Chaos::Mood::usual:
      return;
    case Chaos::Mood::slow:
      return chaos.sleep_up_to(kSlowSleepNs);
    case Chaos::Mood::hasty:
      break;
  }
  look_again_in(chaos.below(kHastyGapNs));
  if (chaos.one_in(4)) wake_searcher(nullptr);
  if (chaos.one_in(8) && runtime->network.in_use()) runtime->network.interrupt();
  if (chaos.one_in(16)) runtime->long_calls.note_taken();
  if (runtime->world.stopping()) return;  // sysmon takes all Ps anyway
  for (std::uint32_t rounds = 1 + chaos.below(kMostRounds); rounds != 0; --rounds) {
    std::span<P* const> ps = runtime->ps.in_use();
    P* p = ps[chaos.below(static_cast<std::uint32_t>(ps.size()))];
    if (M* m = p->holder.load(base::acquire)) bother(p, m);
  }
}

// m seems to hold p.
void Sysmon::bother(P* p, M* m) {
  Chaos& chaos = runtime->chaos;
  bool can_be_stopped = runtime->options.preempt && runtime->preemption.works();
  // Most Ms are inside whenever sysmon looks, and nothing can be taken from them.
  for (int pauses = 0; m->grip.is_inside() && pauses < kMostPausesInside; ++pauses)
    base::cpu_relax();
  switch (chaos.below(8)) {
    case 0:
      if (can_be_stopped) take(p, m, Because::blocked, Need::others);
      return;
    case 1:
      if (can_be_stopped) take(p, m, Because::ran_long, Need::others);
      return;
    case 2:  // not a thread that sleeps: a signal may end its system call
      if (can_be_stopped && !base::is_asleep_in_kernel(m->os.tid.load(base::relaxed)))
        runtime->preemption.stop(m);
      return;
    default:  // [grip] asks and withdraws: the M's next entry is a slow one
      if (!m->grip.ask()) return;
      chaos.disturb();
      return m->grip.withdraw();
  }
}

}  // namespace magpie::sched
