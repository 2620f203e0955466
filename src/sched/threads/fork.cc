#include "sched/threads/fork.h"

#include <pthread.h>

#include "base/check.h"
#include "sched/child_settings.h"
#include "sched/current.h"
#include "sched/dump/snapshot.h"
#include "sched/rest/bystanders.h"
#include "sched/run/runtime.h"
#include "sched/run/short_way.h"
#include "sched/run_end.h"
#include "sched/threads/overflow.h"
#include "sched/timers.h"
#include "symbol/symbols.h"
#include "trace/recorder.h"

namespace magpie::sched {
namespace {

void in_child() {
  M* m = current_m();
  set_current_m(nullptr);
  trace::Recorder::forget();
  forget_dumps();
  symbol::forget();
  forget_waiting_threads();
  // Another thread may have been anywhere in run(), or at the gate, also while there was no
  // runtime.
  forget_outsiders();
  forget_bystanders();
  forget_run();
  forget_timers();
  open_short_way();
  if (runtime == nullptr) return;
  if (m != nullptr) {
    restore_settings_of(m);
    runtime->preemption.block_again(m);
  }
  runtime->preemption.remove();
  remove_overflow_handler();
  remove_quit_handler();
  note_forgotten_run(runtime->generation);
  runtime = nullptr;
}

// Registered while the program is loaded (base/per_process.h says why). If there is no memory for
// it, a child must exec.
[[maybe_unused]] const int at_forks = pthread_atfork(nullptr, nullptr, in_child);

}  // namespace

void returned_in_forked_child() {
  base::fatal(
      "a goroutine returned in the child of a fork(); call exec or _exit there, or run() again");
}

}  // namespace magpie::sched
