#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace magpie::base {

void futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wait_until(const Atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::int64_t deadline_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t at = deadline_ns < 0 ? 0 : deadline_ns;
  timespec deadline{.tv_sec = static_cast<time_t>(at / kSecond),
                    .tv_nsec = static_cast<long>(at % kSecond)};
  // The bitset kind takes a point in time, the plain kind a duration.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, &deadline, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(const Atomic<std::uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace magpie::base
