#include "sched/dump/fault_guard.h"

#include <ucontext.h>

namespace magpie::sched {

__thread sigjmp_buf* magpie_fault_guard = nullptr;

[[gnu::noinline]] bool survives(void (*f)(void*), void* argument) {
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {  // the handler has put the mask back
    magpie_fault_guard = nullptr;
    return false;
  }
  magpie_fault_guard = &here;
  f(argument);
  magpie_fault_guard = nullptr;
  return true;
}

// The mask is that of the fault again. ThreadSanitizer installs its own handler in place of ours,
// which blocks all signals: the next fault would end the program, whoever handles it.
void jump_back_if_guarded(const void* context) {
  if (magpie_fault_guard == nullptr) return;
  pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
  siglongjmp(*magpie_fault_guard, 1);
}

}  // namespace magpie::sched
