// blocking.cc: a goroutine says that it blocks its thread, or that it must stay on it.
//
// A goroutine outside the runtime needs no P, so there is nothing to give up before the call and nothing to get back
// after it: the mark only tells sysmon not to wait until it has found out by itself. If the P was taken
// meanwhile, the goroutine takes an idle one at once, or runs on without; most soon block again, or enter the
// runtime and queue there. One that uses the CPU instead is stopped, see sysmon.h.
#include <magpie/blocking.h>

#include "sched/bound.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/runtime.h"

namespace magpie::detail {

using namespace sched;

BlockingCall::BlockingCall() noexcept {
  M* m = current_m();
  outermost_ = m != nullptr && !m->is_in_blocking_call();
  if (outermost_) m->begin_or_end_blocking_call();
}

namespace {

// Entering gets it a P.
[[gnu::noinline]] void come_back_without_p() {
  Runtime& rt = *runtime;
  bool a_p_is_idle = rt.search.view().idle != 0;
  bool can_be_stopped_later = rt.preemption.works();
  if (a_p_is_idle || !can_be_stopped_later) Entry entry;
}

}  // namespace

BlockingCall::~BlockingCall() {
  if (!outermost_) return;
  M* m = current_m();
  if (m->is_in_blocking_call())
    m->begin_or_end_blocking_call();  // else it was on another thread when it began
  if (m->grip.is_taken()) [[unlikely]]
    come_back_without_p();
}

}  // namespace magpie::detail

namespace magpie {

using namespace sched;

ThreadLock::ThreadLock() noexcept {
  Entry entry;
  M* m = entry.m();
  if (m == nullptr) return;
  ++m->thread_locks;
  m->current->bound = true;
}

ThreadLock::~ThreadLock() {
  Entry entry;
  M* m = entry.m();
  if (m == nullptr || m->thread_locks == 0 || --m->thread_locks != 0) return;
  m->current->bound = false;
}

}  // namespace magpie
