// fake_cpus.h: how many CPUs the affinity mask shows to this test program. Quotas count only below
// the CPUs that there are, and the machine may have two.
#pragma once

#include <atomic>

namespace magpie::support {

extern std::atomic<int> fake_cpus;  // 0: the real ones. Defined in procs_test.cc.

}  // namespace magpie::support
