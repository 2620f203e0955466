// wait_profile.h: a table of the stacks on which goroutines waited.
//
// Off, park() reads one word. On, park() notes each wait after it, on the goroutine's own stack,
// which is as it was when the wait began. A wait of d ns is taken with the chance d / period, and
// then stands for period / d waits of that length.
//
// It is noted inside the runtime. So the table is of a fixed size, and made by mmap, before
// recording begins. Waits that find no room in it are counted. The unwinder reads the tables of the
// C++ runtime. From glibc 2.35 on it takes no lock for that; before, the valve (valve.h) sees to a
// thread that was stopped with the lock.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "base/page_array.h"
#include "sched/core/m.h"
#include "sched/wait_reason.h"

namespace magpie::sched {

class WaitProfile {
 public:
  static constexpr std::size_t kMostFrames = 48;

  // All waits for one reason on one stack.
  struct Entry {
    std::uint64_t waits;
    std::uint64_t waited_ns;
    WaitReason reason;
    std::uint32_t frames;                           // 0: not used yet
    std::array<std::uintptr_t, kMostFrames> stack;  // addresses to return to, innermost first
  };

  bool is_on() const { return period_ns_.load(base::relaxed) != 0; }

  // Outside the runtime. False: no memory.
  [[nodiscard]] bool start(std::int64_t period_ns);
  void stop() { period_ns_.store(0, base::relaxed); }

  // m's goroutine has waited, and runs again.
  void note(M* m, WaitReason reason, std::int64_t waited_ns);

  // Copies entries from number `first` on, also unused ones, and returns how many. 0: that was all.
  // Inside the runtime, or from a plain thread.
  std::size_t copy(std::size_t first, std::span<Entry> out);
  std::uint64_t lost();

 private:
  static constexpr std::size_t kEntries = 4096;
  static constexpr std::size_t kTries = 64;

  Entry* find_locked(const Entry& wanted) MAGPIE_REQUIRES(lock_);

  // atomic, a hint: when to begin and to end; 0: off. lock_ gives the table its order
  base::Atomic<std::int64_t> period_ns_{0};
  base::Lock lock_;
  base::PageArray<Entry> table_ MAGPIE_GUARDED_BY(lock_);
  std::uint64_t lost_ MAGPIE_GUARDED_BY(lock_) = 0;
};

// One for all run()s. Hidden, as it is read at every park.
extern WaitProfile wait_profile __attribute__((visibility("hidden")));

}  // namespace magpie::sched
