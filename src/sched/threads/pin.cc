#include "sched/threads/pin.h"

#include "cpus/affinity.h"
#include "sched/core/m.h"

namespace magpie::sched {

void Pins::prepare() {
  if (!are_wanted_) return;
  work_ = sched_getaffinity(0, sizeof all_, &all_) == 0;  // more than 1,024 CPUs: not pinned
  ++preparations_;
}

void Pins::bind_slow(M* m) const {
  int cpu = m->p->home.cpu;
  bool is_known = m->os.pinned_to == cpu && m->os.pinned_by == preparations_;
  if (!work_ || is_known || cpu < 0 || cpu >= CPU_SETSIZE) return;
  m->os.cpus_before = all_;
  m->os.pinned_by = preparations_;
  bind_again(m, cpu);
}

void Pins::bind_again(M* m, int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof one, &one) == 0) m->os.pinned_to = cpu;
}

void Pins::release(M* m) {
  if (m->os.pinned_to == -1) return;
  cpus::use_cpus_again(m->os.cpus_before);
  m->os.pinned_to = -1;
}

}  // namespace magpie::sched
