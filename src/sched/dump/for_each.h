// for_each.h: looks at every goroutine without keeping anybody waiting.
#pragma once

#include <span>

#include "sched/entry.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

// Calls f(g) for every record ever carved, also for free ones. Records change meanwhile. The caller
// is outside the runtime while f runs: it may be stopped, and takes its time.
template <class F>
void for_each_goroutine(F f) {
  for (std::size_t slab = 0;; ++slab) {
    std::span<G> records;
    {
      Entry entry;
      records = runtime->records.carved_in(slab);
    }
    if (records.empty()) return;
    for (G& g : records) f(&g);
  }
}

}  // namespace magpie::sched
