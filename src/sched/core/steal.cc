#include "sched/core/steal.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/probe.h"
#include "sched/policy.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/victims.h"

namespace magpie::sched {
namespace {

using policy::kStealRounds;

void be_patient() {
  std::int64_t until = base::now_ns() + policy::kPatienceNs;
  while (base::now_ns() < until) base::cpu_relax();
}

// Goroutines that a running goroutine wakes come one by one. A thief that took each at once would
// run it for a single step, say one value into a full channel, before it waits again. All its cache
// lines would move between the cores.
bool has_few_woken(P* victim) {
  // A record is always a G, if not always the same. A wrong guess costs one wait.
  G* oldest = victim->queue.glance();
  return oldest != nullptr && oldest->state.load(base::relaxed) == GState::runnable &&
         policy::is_few(victim->queue.size());
}

// The goroutine that runs there most likely readied the one in runnext, and is about to block. Then
// its P will run it in a moment, with warm caches. So a thief takes it only if it is still there
// after a while, in which the P has taken nothing from the slot and was not busy with waking us. A
// pair of goroutines that wake each other fills the slot all the time: the thief does not look
// meanwhile, and so leaves the pair its cache lines.
G* steal_runnext(P* victim) {
  G* g = victim->queue.next.peek();
  if (g == nullptr) return nullptr;
  std::uint64_t inherited = victim->counters.inherited.read();
  be_patient();
  bool has_taken = victim->counters.inherited.read() != inherited;
  bool is_waking = victim->waking.load(base::relaxed);  // relaxed: only a hint
  if (!policy::may_steal_runnext(has_taken, is_waking)) return nullptr;
  return victim->queue.next.steal(g) ? g : nullptr;
}

// For traces: looks in vain, one after the other at the same P, are one event.
class Misses {
 public:
  explicit Misses(P* thief) : thief_(thief) {}
  ~Misses() { tell(); }
  Misses(const Misses&) = delete;
  Misses& operator=(const Misses&) = delete;

  void add(const P* victim) {
    if (victim != victim_) tell();
    victim_ = victim;
    ++count_;
  }
  void tell_of_steal(const P* victim, std::uint64_t moved, std::uint64_t from_runnext) {
    tell();
    if (traced())
      trace_p(thief_, Kind::steal, static_cast<std::uint64_t>(victim->index), moved, from_runnext);
  }

 private:
  void tell() {
    if (count_ != 0 && traced())
      trace_p(thief_, Kind::steal_miss, static_cast<std::uint64_t>(victim_->index), count_);
    count_ = 0;
  }

  P* thief_;
  const P* victim_ = nullptr;
  std::uint64_t count_ = 0;
};

void count_steal(P* p, const P* victim, std::size_t moved) {
  p->counters.steals_succeeded.increment();
  p->counters.goroutines_stolen.add(moved);
  Distance distance = distance_of(p->home, static_cast<std::uint32_t>(victim->index));
  if (distance <= Distance::cache) p->counters.steals_near.increment();
  if (distance == Distance::far) p->counters.steals_far.increment();
  MAGPIE_PROBE(steal, p->index, victim->index, moved);
}

// One thief, in one call of steal().
class Thief {
 public:
  explicit Thief(M* m) : m_(m), p_(m->p), was_patient_(runtime->chaos.one_in(2)), misses_(m->p) {}

  G* search() {
    std::span<P* const> ps = runtime->ps.in_use();
    Victims victims(p_->home, static_cast<std::uint32_t>(p_->index),
                    static_cast<std::uint32_t>(ps.size()), runtime->idle.mask(), p_->detours);
    P* tip = std::exchange(m_->tip, nullptr);
    for (int round = 0; round < kStealRounds; ++round) {
      victims.begin_round(round, p_->random.next());
      for (;;) {
        std::uint32_t at = victims.next();
        if (at == kNoP) break;
        if (runtime->world.stopping()) return nullptr;
        P* victim = ps[at];
        std::size_t waiting = victim->queue.size();
        if (!victims.is_worth_it(waiting)) continue;
        if (G* g = look_at(victim, round)) {
          victims.note_robbed();
          return g;
        }
      }
    }
    bool may_be_missed = tip != nullptr && tip != p_ && ps.size() > policy::kLooksPerDistance;
    return may_be_missed ? look_at(tip, kStealRounds - 1) : nullptr;
  }

 private:
  G* look_at(P* victim, int round) {
    p_->counters.steals_tried.increment();
    if (!was_patient_ && has_few_woken(victim)) {
      be_patient();
      was_patient_ = true;
    }
    std::size_t moved = 0;
    std::uint64_t from_runnext = 0;
    G* g = p_->queue.steal_half(victim->queue, moved);
    if (g == nullptr && policy::looks_at_runnext(round)) {
      g = steal_runnext(victim);
      moved = from_runnext = 1;
    }
    if (g == nullptr) {
      misses_.add(victim);
      return nullptr;
    }
    if (from_runnext != 0) p_->counters.runnext_stolen.increment();
    count_steal(p_, victim, moved);
    misses_.tell_of_steal(victim, moved, from_runnext);
    return g;
  }

  M* m_;
  P* p_;
  bool was_patient_;
  Misses misses_;
};

}  // namespace

G* steal(M* m) {
  Thief thief(m);
  if (runtime->chaos.one_in(4)) return nullptr;
  return thief.search();
}

}  // namespace magpie::sched
