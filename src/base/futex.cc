#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "base/clock.h"
#include "base/sanitizer.h"

namespace magpie::base {
namespace {

thread_local std::atomic<std::uint32_t>* own_sleeps = nullptr;

class OwnSleep {
 public:
  OwnSleep() { note(); }
  ~OwnSleep() { note(); }
  OwnSleep(const OwnSleep&) = delete;
  OwnSleep& operator=(const OwnSleep&) = delete;

 private:
  // Odd while the thread sleeps. relaxed: for sysmon, which asks the kernel in between
  static void note() {
    if (own_sleeps == nullptr) return;
    own_sleeps->store(own_sleeps->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

#if defined(MAGPIE_TSAN)
// ThreadSanitizer keeps a signal back until the thread makes a call that it intercepts, and
// syscall() is none. So a signal just before a sleep does not end the sleep, and no sleep may be
// long.
constexpr std::int64_t kLongestSleepNs = 10'000'000'000;

void let_signals_in() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
}
#endif

}  // namespace

void note_own_sleeps_in(std::atomic<std::uint32_t>* place) { own_sleeps = place; }

void futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t expected) {
#if defined(MAGPIE_TSAN)
  futex_wait_until(word, expected, std::numeric_limits<std::int64_t>::max());
#else
  OwnSleep asleep;
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
#endif
}

void futex_wait_until(const Atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::int64_t deadline_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t at = deadline_ns < 0 ? 0 : deadline_ns;
#if defined(MAGPIE_TSAN)
  at = std::min(at, now_ns() + kLongestSleepNs);
#endif
  timespec deadline{.tv_sec = static_cast<time_t>(at / kSecond),
                    .tv_nsec = static_cast<long>(at % kSecond)};
  OwnSleep asleep;
  // The bitset kind takes a point in time, the plain kind a duration.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, &deadline, nullptr,
          FUTEX_BITSET_MATCH_ANY);
#if defined(MAGPIE_TSAN)
  let_signals_in();
#endif
}

void futex_wake(const Atomic<std::uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace magpie::base
