#include "sched/entry.h"

#include "sched/core/queues.h"
#include "sched/core/switching.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/bound.h"
#include "sched/taking/free_cpu.h"
#include "sched/taking/hand_off.h"

namespace magpie::sched {
namespace {

// Runs after the goroutine's registers are saved: the goroutine waits for a P in the queue, and its
// thread is free.
bool queue_up(M* m, G* g, void*) {
  if (g->state.load(base::relaxed) == GState::running)  // else its body is over
    g->state.store(GState::runnable, base::relaxed);
  if (traced()) trace_outside(Kind::stop, g->id, static_cast<std::uint64_t>(Place::urgent));
  runtime->global.push_urgent(g);
  runtime->chaos.disturb();
  note_back(m);
  wake_searcher(nullptr);
  runtime->sysmon.look_soon();
  return true;
}

// The same for a goroutine that has a P.
bool give_way(M* m, G* g, void*) {
  if (g->state.load(base::relaxed) == GState::running)
    g->state.store(GState::runnable, base::relaxed);
  runtime->global.push(g);
  wake_searcher(m);
  return true;
}

}  // namespace

M* enter_runtime_slow(M* m) {
  runtime->chaos.disturb();
  if (m->grip.keep()) {
    bool is_asked = m->p->must_give_way;
    if (is_asked) m->p->must_give_way = false;
    if (m->current->bound) {
      bool is_over = m->current->state.load(base::relaxed) != GState::running;
      if (is_asked && !is_over) yield_bound(m, m->current);
      return m;
    }
    bool stays = !(is_asked || (runtime->options.preempt && runtime->chaos.one_in(2)));
    return stays ? m : switch_away(m, m->current, nullptr, give_way, nullptr);
  }
  if (m->signalled.load(base::relaxed)) [[unlikely]]
    runtime->preemption.let_in();
  wake_successor(m, this_cpu());
  m->p = nullptr;
  if (m->current->bound) {
    if (!wait_in_place(m, Line::urgent)) abandon_goroutine(m);
    return m;
  }
  if (!take_idle_p(m)) return switch_away(m, m->current, nullptr, queue_up, nullptr);
  // Sysmon took the P because others wait, and no other thread can run them. A goroutine that loops
  // and calls the runtime, or blocks again and again, must not just go on.
  return no_thread_comes() ? switch_away(m, m->current, nullptr, give_way, nullptr) : m;
}

std::uint32_t random_of(M* m) { return m->p->random.next(); }

}  // namespace magpie::sched
