#include "sched/dump/fault_guard.h"

namespace magpie::sched {

__thread sigjmp_buf* magpie_fault_guard = nullptr;

[[gnu::noinline]] bool survives(void (*f)(void*), void* argument) {
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {  // the handler is SA_NODEFER: the mask is as it was
    magpie_fault_guard = nullptr;
    return false;
  }
  magpie_fault_guard = &here;
  f(argument);
  magpie_fault_guard = nullptr;
  return true;
}

void jump_back_if_guarded() {
  if (magpie_fault_guard != nullptr) siglongjmp(*magpie_fault_guard, 1);
}

}  // namespace magpie::sched
