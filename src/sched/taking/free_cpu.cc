#include "sched/taking/free_cpu.h"

#include <sched.h>

#include <utility>

#include "cpus/affinity.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

int this_cpu() { return sched_getcpu(); }

void move_to_free_cpu(M* m) {
  int cpu = std::exchange(m->p->free_cpu, kAnyCpu);
  bool all_cpus_are_used = static_cast<int>(runtime->ps.count()) >= runtime->procs_source.cpus();
  if (!all_cpus_are_used || m->os.pinned_to != -1 || cpu == this_cpu()) return;
  cpu_set_t mine, one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0 || !CPU_ISSET(cpu, &mine)) return;
  if (sched_setaffinity(0, sizeof one, &one) == 0) cpus::use_cpus_again(mine);
}

}  // namespace magpie::sched
