// tbb_procs.h: gives a oneTBB program as many threads as the parameter procs says.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include "measure.h"

namespace bench {

template <class F>
void with_tbb_procs(const Args& args, F f) {
  auto procs = static_cast<std::size_t>(args.number("procs", 1));
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism, procs);
  tbb::task_arena(static_cast<int>(procs)).execute(f);
}

}  // namespace bench
