#include "sched/current.h"

namespace magpie::sched {

extern "C" {
__thread M* magpie_current_m = nullptr;
}

[[gnu::noinline]] void set_current_m(M* m) { magpie_current_m = m; }

}  // namespace magpie::sched
