#include "sched/current.h"

namespace magpie::sched {

extern "C" {
// used: link-time optimisation does not see that assembly reads it.
__attribute__((used)) __thread M* magpie_current_m = nullptr;
}

[[gnu::noinline]] void set_current_m(M* m) { magpie_current_m = m; }

}  // namespace magpie::sched
