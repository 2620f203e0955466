// pin.h: Options::pin. The thread that holds P i runs on the i-th of the process's CPUs, modulo
// their number.
#pragma once

#include <sched.h>

#include <vector>

namespace magpie::sched {

struct M;

class Pins {
 public:
  // Remembers the CPUs that the calling thread may use.
  void prepare();

  // The calling thread, which is m's, now holds m->p.
  void bind(M* m);

  // The calling thread, which is m's, gets back the CPUs that it had before.
  void release(M* m);

 private:
  std::vector<int> cpus_;  // fixed after prepare(); empty: do not pin
  cpu_set_t all_{};
};

}  // namespace magpie::sched
