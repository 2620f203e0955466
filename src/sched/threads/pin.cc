#include "sched/threads/pin.h"

#include "sched/core/m.h"

namespace magpie::sched {

void Pins::prepare() {
  if (sched_getaffinity(0, sizeof all_, &all_) != 0) return;  // more than 1,024 CPUs: not pinned
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all_)) cpus_.push_back(cpu);
  }
}

void Pins::bind(M* m) {
  if (cpus_.empty()) return;
  int cpu = cpus_[static_cast<std::size_t>(m->p->index) % cpus_.size()];
  if (m->os.pinned_to == cpu) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof one, &one) == 0) m->os.pinned_to = cpu;
}

void Pins::release(M* m) {
  if (m->os.pinned_to == -1) return;
  sched_setaffinity(0, sizeof all_, &all_);
  m->os.pinned_to = -1;
}

}  // namespace magpie::sched
