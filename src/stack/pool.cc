#include "stack/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/guard.h"
#include "base/os.h"
#include "stack/guard.h"

namespace magpie::stack {

namespace {

constexpr std::uint64_t kCanary = 0x5afe'ca9a'b12d'f00d;

// The end of the stack's first page, which also holds its record. Frames that were left behind may
// have marked it as not to be touched, for sanitizers and Valgrind.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] volatile std::uint64_t& canary_of(
    Stack* stack) {
  auto* canary = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(stack) &
                                                  ~(page_size() - 1));
  base::excuse_to_valgrind(canary, sizeof *canary);
  return *canary;
}
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] Stack* with_canary(Stack* stack) {
  canary_of(stack) = kCanary;
  return stack;
}
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] bool canary_lives(Stack* stack) {
  return canary_of(stack) == kCanary;
}

}  // namespace

Pool::~Pool() {
  for (Stack* stack : warm_) base::close_fiber(stack->fiber);
  for (Slab& slab : slabs_) {
    base::forget_memory(slab.memory, slab.bytes);
    munmap(slab.memory, slab.bytes);
  }
}

std::byte* Pool::memory_of(Stack* stack) const { return stack->low - guard_bytes(); }

Stack* Pool::made(std::byte* memory) const {
  Stack* stack = construct(memory, stack_size_);
  stack->pool_number = number_;
  return with_canary(stack);
}

std::size_t Pool::take_warm(std::span<Stack*> out) {
  base::Guard hold(lock_);
  return take_warm_locked(out);
}

// The hottest is last in `out`. Returns how many there were.
std::size_t Pool::take_warm_locked(std::span<Stack*> out) {
  std::size_t count = warm_.take_last(out);
  least_warm_ = std::min(least_warm_, warm_.size());
  return count;
}

Stack* Pool::take() {
  lock_.lock();
  if (Stack * stack; take_warm_locked({&stack, 1}) != 0) {
    lock_.unlock();
    return stack;
  }
  if (cold_.empty()) return carve_and_unlock();
  std::byte* memory = cold_.take_last();
  lock_.unlock();
  return made(memory);  // its guard is still in place, only the record is gone
}

Stack* Pool::carve_and_unlock() {
  if (slabs_.empty() || (slabs_.back().carved + 1) * distance_ > slabs_.back().bytes) {
    if (!add_slab_locked()) {
      lock_.unlock();
      return nullptr;
    }
  }
  Slab& slab = slabs_.back();
  std::byte* memory = slab.memory + slab.carved++ * distance_;
  ++carved_;
  lock_.unlock();
  install_guard(memory);
  return made(memory);
}

// Asks the kernel for memory under the lock: that happens once in hundreds of stacks, and two
// threads that both found the pool empty should not map twice. It must not allocate. An M comes
// here inside the runtime, with its P. It would wait for a lock of malloc that a stopped thread may
// hold, while other Ms wait for lock_.
bool Pool::add_slab_locked() {
  std::size_t bytes = std::max(kSlabBytes / distance_, std::size_t{4}) * distance_;
  for (; bytes >= distance_; bytes = bytes / distance_ / 2 * distance_) {
    void* memory = base::os().map(nullptr, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) continue;
    std::size_t stacks = carved_ + bytes / distance_;
    if (!warm_.reserve(stacks) || !cold_.reserve(stacks) || !slabs_.reserve(slabs_.size() + 1)) {
      munmap(memory, bytes);
      return false;
    }
    slabs_.push(Slab{static_cast<std::byte*>(memory), bytes, 0});
    madvise(memory, bytes, MADV_NOHUGEPAGE);  // one touched page must not commit two megabytes
    install_slab_guard(slabs_.back().memory);
    return true;
  }
  return false;
}

void Pool::give_back_depths(Stack* stack) const {
  std::byte* low = stack->low;
  std::byte* keep = memory_of(stack) + stack_size_ - kKeepBytes;
  std::size_t page = page_size();
  std::array<unsigned char, 256> resident;
  for (std::byte* from = low; from < keep;) {
    std::size_t length = std::min(static_cast<std::size_t>(keep - from), resident.size() * page);
    // Stacks grow down, so the pages just below `keep` tell whether anything deeper was used. But a
    // large frame may have skipped some pages, so look at all.
    if (mincore(from, length, resident.data()) != 0) return;
    if (std::any_of(resident.begin(), resident.begin() + static_cast<std::ptrdiff_t>(length / page),
                    [](unsigned char present) { return (present & 1) != 0; })) {
      madvise(low, static_cast<std::size_t>(keep - low), MADV_DONTNEED);
      return;
    }
    from += length;
  }
}

void Pool::give(std::span<Stack* const> stacks) {
  for (Stack* stack : stacks) {
    if (canary_lives(stack) && ++stack->times_given % kGivesPerLook != 0) continue;
    give_back_depths(stack);
    with_canary(stack);
  }
  std::int64_t now_ns = base::coarse_now_ns();
  {
    base::Guard hold(lock_);
    warm_.push(stacks);
    if (warm_.size() > kAlwaysWarm && next_trim_ns() == kNever) {
      least_warm_ = warm_.size();
      next_trim_ns_.store(now_ns + kTrimPeriodNs, base::relaxed);
    }
  }
  trim(now_ns);
}

void Pool::trim(std::int64_t now_ns) {
  if (now_ns < next_trim_ns()) return;
  for (std::size_t batches = kTrimmedAtOnce / kTrimBatch; batches != 0; --batches) {
    std::array<Stack*, kTrimBatch> batch;
    std::size_t count;
    {
      base::Guard hold(lock_);
      if (now_ns < next_trim_ns()) return;
      std::size_t least = least_warm_;
      std::size_t unneeded = least > kAlwaysWarm ? least - kAlwaysWarm : 0;
      count = take_warm_locked({batch.data(), std::min(unneeded, batch.size())});
      least_warm_ = least - count;
      if (count == unneeded) {
        // The next period begins, unless the floor is reached.
        least_warm_ = warm_.size();
        next_trim_ns_.store(warm_.size() > kAlwaysWarm ? now_ns + kTrimPeriodNs : kNever,
                            base::relaxed);
        batches = 1;
      }
    }
    make_cold({batch.data(), count});
  }
}

void Pool::make_cold(std::span<Stack* const> stacks) {
  std::array<std::byte*, kTrimBatch> cold;
  std::size_t filled = 0;
  for (Stack* stack : stacks) {
    cold[filled++] = memory_of(stack);
    base::close_fiber(stack->fiber);
    madvise(stack->low, stack_size_ - guard_bytes(), MADV_DONTNEED);
  }
  base::Guard hold(lock_);
  cold_.push(std::span<std::byte* const>(cold.data(), filled));
}

Pool::Usage Pool::usage() {
  base::Guard hold(lock_);
  return Usage{.stacks = carved_, .warm = warm_.size(), .cold = cold_.size()};
}

}  // namespace magpie::stack
