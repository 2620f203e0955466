// blocking.cc: a goroutine says that it blocks its thread.
//
// A goroutine outside the runtime needs no P. So it gives nothing up before the call and gets
// nothing back after it. The mark only tells sysmon not to wait until it has found out by itself.
// If sysmon took the P meanwhile, the goroutine takes an idle one at once, or runs on without. Most
// goroutines soon block again, or enter the runtime and queue there. A goroutine that uses the CPU
// instead is stopped, see without_p.h. When sysmon took the Ps of the last calls, because others
// waited and the calls were long, the goroutine hands its P over itself (long_calls.h). Leaving
// that to sysmon would take wake-ups of sleeping CPUs each time. A call that then returns soon ends
// this.
#include <magpie/blocking.h>

#include <utility>

#include "base/clock.h"
#include "base/guard.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"

namespace magpie::detail {

using namespace sched;

namespace {

// Inside. Goroutines wait for this P, and no other M is there that could run them.
bool is_waited_for(P* p) {
  Search::View view = runtime->search.view();
  bool others_find_it = view.searching != 0 || view.idle != 0;
  return !others_find_it && (!p->queue.looks_empty() || !runtime->global.empty());
}

// Null: no thread sleeps. Making one is not worth it. Until the new thread has begun, the P would
// lie idle. And if the thread needs a lock to begin that a stopped thread holds, sysmon would have
// to take the P back.
M* take_sleeping_thread(const P* p) {
  base::Guard hold(runtime->idle.lock());
  return runtime->world.stopping() ? nullptr : runtime->idle.take_m_locked(p);
}

// Returns the goroutine's M, which may be another than before.
[[gnu::noinline]] M* hand_over_p(M* before) {
  // An M without a P has nothing to hand over, nor to queue for. An M that is inside already needs
  // its P afterwards.
  if (before->grip.is_taken() || before->grip.is_inside()) return before;
  Entry entry;
  M* m = entry.m();
  if (runtime->world.stopping() || m->current->bound || !is_waited_for(m->p)) return m;
  M* next = take_sleeping_thread(m->p);
  if (next == nullptr) {
    runtime->threads.start_spares(m->p->queue.size() + runtime->global.size(),
                                  Threads::kMostSpares);
    return m;
  }
  P* p = std::exchange(m->p, nullptr);
  m->handed_over_ns = base::now_ns();
  if (traced()) trace_taken(p, m->current->id, trace::Why::blocking);
  p->end_hold(m->handed_over_ns);
  if (traced()) trace_handed_over(p);
  p->counters.handoffs.increment();
  m->grip.set_taken();
  runtime->without_p.add();
  runtime->without_p.announce(m);
  next->rest.handed = p;
  next->rest.handed_searching = false;
  wake(next);
  return m;
}

}  // namespace

BlockingCall::BlockingCall() noexcept {
  M* m = current_m();
  outermost_ = m != nullptr && !m->is_in_blocking_call();
  if (!outermost_) return;
  if (traced()) [[unlikely]]
    trace_blocking(m, Kind::block_begin);
  if (runtime->long_calls.are_usual()) [[unlikely]]
    m = hand_over_p(m);
  m->begin_or_end_blocking_call();
}

namespace {

// Entering gets the M a P.
[[gnu::noinline]] void come_back_without_p() {
  M* m = current_m();
  std::int64_t handed_over_ns = std::exchange(m->handed_over_ns, 0);
  if (handed_over_ns != 0) runtime->long_calls.note_length(base::now_ns() - handed_over_ns);
  bool a_p_is_idle = runtime->search.view().idle != 0;
  bool can_be_stopped_later = runtime->preemption.works();
  if (a_p_is_idle || !can_be_stopped_later) Entry entry;
}

}  // namespace

BlockingCall::~BlockingCall() {
  if (!outermost_) return;
  M* m = current_m();
  if (m == nullptr) [[unlikely]]
    return;  // the child of a fork() inside blocking() is a plain thread
  if (m->is_in_blocking_call())
    // else the call began on another thread
    m->begin_or_end_blocking_call();
  if (traced()) [[unlikely]]
    trace_blocking(m, Kind::block_end);
  if (m->grip.is_taken()) [[unlikely]]
    come_back_without_p();
}

}  // namespace magpie::detail
