// pool.h: stacks of one size, reused hot.
//
//     M's hand --give--> Cache (per P, no lock) --half--> Pool: warm list --trim--> cold
//              <--take--                        <--------            <-- carve or re-use -----
//
// Warm stacks keep their first pages. Cold stacks gave all memory back to the system and cost
// address space only. Warm stacks beyond kAlwaysWarm that nobody needed for a second become cold.
// So a burst that comes again finds its stacks warm, and a burst that does not costs nothing for
// long. give() trims, and so does the M that sleeps with the timer duty in an idle program. What a
// stack used below its first kKeepBytes is given back when it leaves a P's cache. Asking the system
// what it used costs as much as starting a goroutine. So a canary at the end of its first page
// tells. While it is alive, nothing went deeper, except a frame so large that it stepped over the
// canary. Every 32nd time the pool asks the system, and finds that too. Lists of stacks are arrays
// of pointers. A list through the stacks themselves would fetch a cold cache line for each step,
// one after the other. Slabs are large mappings that are never committed as a whole. They live
// until the Pool dies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "base/page_array.h"
#include "stack/stack.h"

namespace magpie::stack {

class Pool {
 public:
  // `number` tells it from other pools, see Stack::pool_number.
  explicit Pool(std::size_t stack_size, std::uint8_t number = 0)
      : stack_size_(stack_size), distance_(distance_of(stack_size)), number_(number) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::size_t stack_size() const { return stack_size_; }

  // A stack, or null when the system gives no more memory.
  Stack* take();
  // As many warm ones as there are, and fit. The hottest is last. Returns how many.
  std::size_t take_warm(std::span<Stack*> out);

  void give(std::span<Stack* const> stacks);
  void give(Stack* stack) { give({&stack, 1}); }

  // Makes cold some of the warm stacks that were not needed since the last time. May be called at
  // any time, and does something from next_trim_ns() (base::coarse_now_ns) on.
  void trim(std::int64_t now_ns);
  std::int64_t next_trim_ns() const { return next_trim_ns_.load(base::relaxed); }

  struct Usage {
    std::size_t stacks;  // ever carved
    std::size_t warm;    // waiting with memory
    std::size_t cold;    // waiting without
  };
  Usage usage();

 private:
  static constexpr std::size_t kAlwaysWarm = 4096;
  static constexpr std::size_t kTrimmedAtOnce = 1024;
  static constexpr std::size_t kTrimBatch = 64;
  static constexpr std::int64_t kTrimPeriodNs = 1'000'000'000;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::uint32_t kGivesPerLook = 32;
  static constexpr std::size_t kKeepBytes = 16 * 1024;
  static constexpr std::size_t kSlabBytes = std::size_t{64} << 20;

  struct Slab {
    std::byte* memory;
    std::size_t bytes;
    std::size_t carved;  // stacks made so far, from the low end
  };

  Stack* made(std::byte* memory) const;
  std::size_t take_warm_locked(std::span<Stack*> out) MAGPIE_REQUIRES(lock_);
  Stack* carve_and_unlock() MAGPIE_RELEASES(lock_);
  bool add_slab_locked() MAGPIE_REQUIRES(lock_);
  void give_back_depths(Stack* stack) const;
  void make_cold(std::span<Stack* const> stacks);
  std::byte* memory_of(Stack* stack) const;

  // fixed after construction
  const std::size_t stack_size_;
  const std::size_t distance_;
  const std::uint8_t number_;

  base::Lock lock_;
  // Both reserve room for every stack when its slab is made. So giving cannot fail, and asks for no
  // memory.
  base::PageList<Stack*> warm_ MAGPIE_GUARDED_BY(lock_);  // the last is the hottest
  base::PageList<std::byte*> cold_ MAGPIE_GUARDED_BY(lock_);
  std::size_t least_warm_ MAGPIE_GUARDED_BY(lock_) = 0;  // since the trimming period began
  base::PageList<Slab> slabs_ MAGPIE_GUARDED_BY(lock_);
  std::size_t carved_ MAGPIE_GUARDED_BY(lock_) = 0;
  base::Atomic<std::int64_t> next_trim_ns_{kNever};  // atomic, written under lock_: a time
};

}  // namespace magpie::stack
