#include "sched/core/steal.h"

#include <numeric>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/probe.h"
#include "sched/policy.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"

namespace magpie::sched {
namespace {

using policy::kStealRounds;

// Visits 0..n-1 once each: start anywhere, step by a number that shares no factor with n.
class RandomOrder {
 public:
  RandomOrder(std::uint32_t n, std::uint32_t random) : left_(n), n_(n), at_(random % n) {
    step_ = n == 1 ? 1 : 1 + (random >> 16) % (n - 1);
    while (std::gcd(step_, n) != 1) step_ = step_ % n + 1;
  }
  bool done() const { return left_ == 0; }
  std::uint32_t next() {
    --left_;
    at_ = (at_ + step_) % n_;
    return at_;
  }

 private:
  std::uint32_t left_, n_, at_, step_;
};

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

}  // namespace

G* steal(M* m) {
  P* p = m->p;
  std::span<P* const> ps = runtime->ps.in_use();
  bool was_patient = runtime->chaos.one_in(2);
  if (runtime->chaos.one_in(4)) return nullptr;
  Misses misses(p);
  for (int round = 0; round < kStealRounds; ++round) {
    for (RandomOrder order(static_cast<std::uint32_t>(ps.size()), p->random.next());
         !order.done();) {
      P* victim = ps[order.next()];
      if (victim == p) continue;
      if (runtime->world.stopping()) return nullptr;
      p->counters.steals_tried.increment();
      if (!was_patient && has_few_woken(victim)) {
        be_patient();
        was_patient = true;
      }
      std::size_t moved = 0;
      if (G* g = p->queue.steal_half(victim->queue, moved)) {
        p->counters.steals_succeeded.increment();
        p->counters.goroutines_stolen.add(moved);
        MAGPIE_PROBE(steal, p->index, victim->index, moved);
        misses.tell_of_steal(victim, moved, 0);
        return g;
      }
      if (!policy::looks_at_runnext(round)) {
        misses.add(victim);
        continue;
      }
      if (G* g = steal_runnext(victim)) {
        p->counters.steals_succeeded.increment();
        p->counters.goroutines_stolen.increment();
        p->counters.runnext_stolen.increment();
        moved = 1;
        MAGPIE_PROBE(steal, p->index, victim->index, moved);
        misses.tell_of_steal(victim, 1, 1);
        return g;
      }
      misses.add(victim);
    }
  }
  return nullptr;
}

}  // namespace magpie::sched
