// fake_cpus.h: how many CPUs the affinity mask shows to this test program, and for how many Ps it
// has no memory. Quotas count only below the CPUs that there are, and the machine may have two.
#pragma once

#include <atomic>

namespace magpie::support {

extern std::atomic<int> fake_cpus;     // 0: the real ones. Defined in procs_test.cc.
extern std::atomic<int> ps_to_refuse;  // the next ones, on any thread. Defined in p_table_test.cc.

}  // namespace magpie::support
