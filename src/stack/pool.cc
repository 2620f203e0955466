#include "stack/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/os.h"
#include "stack/guard.h"

namespace magpie::stack {

namespace {

constexpr std::uint64_t kCanary = 0x5afe'ca9a'b12d'f00d;

// The end of the stack's first page, in which its record is. Frames that were left behind may have marked it as
// not to be touched, for sanitizers.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] volatile std::uint64_t& canary_of(
    Stack* stack) {
  return *reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(stack) &
                                           ~(page_size() - 1));
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
  for (Stack* stack = warm_; stack != nullptr; stack = stack->next) base::close_fiber(stack->fiber);
  for (Slab& slab : slabs_) {
    base::forget_memory(slab.memory, slab.bytes);
    munmap(slab.memory, slab.bytes);
  }
}

std::byte* Pool::memory_of(Stack* stack) const { return stack->low - guard_bytes(); }

Stack* Pool::take_warm_locked() {
  Stack* stack = warm_;
  if (stack != nullptr) {
    warm_ = stack->next;
    least_warm_ = std::min(least_warm_, --warm_count_);
  }
  return stack;
}

Stack* Pool::take() {
  lock_.lock();
  if (Stack* stack = take_warm_locked()) {
    lock_.unlock();
    return stack;
  }
  if (cold_.empty()) return carve_and_unlock();
  std::byte* memory = cold_.back();
  cold_.pop_back();
  lock_.unlock();
  return with_canary(
      construct(memory, stack_size_));  // its guard is still in place, only the record is gone
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
  return with_canary(construct(memory, stack_size_));
}

// Under the lock although it maps and allocates: it happens once in hundreds of stacks, and two threads
// that both found the pool empty should not map twice.
bool Pool::add_slab_locked() {
  std::size_t bytes = std::max(kSlabBytes / distance_, std::size_t{4}) * distance_;
  for (; bytes >= distance_; bytes = bytes / distance_ / 2 * distance_) {
    void* memory = base::os().map(nullptr, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) continue;
    try {
      cold_.reserve(carved_ + bytes / distance_);
      slabs_.push_back(Slab{static_cast<std::byte*>(memory), bytes, 0});
    } catch (const std::bad_alloc&) {
      munmap(memory, bytes);
      return false;
    }
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
    // Stacks grow down, so the pages just below `keep` tell whether anything deeper was used; but a large
    // frame may have skipped some, so look at all.
    if (mincore(from, length, resident.data()) != 0) return;
    if (std::any_of(resident.begin(), resident.begin() + static_cast<std::ptrdiff_t>(length / page),
                    [](unsigned char present) { return (present & 1) != 0; })) {
      madvise(low, static_cast<std::size_t>(keep - low), MADV_DONTNEED);
      return;
    }
    from += length;
  }
}

void Pool::give(Stack* first) {
  for (Stack* stack = first; stack != nullptr; stack = stack->next) {
    if (canary_lives(stack) && ++stack->times_given % kGivesPerLook != 0) continue;
    give_back_depths(stack);
    with_canary(stack);
  }
  std::int64_t now_ns = base::coarse_now_ns();
  {
    std::lock_guard hold(lock_);
    while (first != nullptr) {
      Stack* stack = first;
      first = stack->next;
      stack->next = warm_;
      warm_ = stack;
      ++warm_count_;
    }
    if (warm_count_ > kAlwaysWarm && next_trim_ns() == kNever) {
      least_warm_ = warm_count_;
      next_trim_ns_.store(now_ns + kTrimPeriodNs, base::relaxed);
    }
  }
  trim(now_ns);
}

void Pool::trim(std::int64_t now_ns) {
  if (now_ns < next_trim_ns()) return;
  Stack* unneeded = nullptr;
  {
    std::lock_guard hold(lock_);
    if (now_ns < next_trim_ns()) return;
    std::size_t spare = least_warm_ > kAlwaysWarm ? least_warm_ - kAlwaysWarm : 0;
    for (std::size_t i = 0; i < std::min(spare, kTrimmedAtOnce); ++i) {
      Stack* stack = take_warm_locked();
      stack->next = unneeded;
      unneeded = stack;
    }
    if (spare <= kTrimmedAtOnce) {
      // The next period begins, unless the floor is reached.
      least_warm_ = warm_count_;
      next_trim_ns_.store(warm_count_ > kAlwaysWarm ? now_ns + kTrimPeriodNs : kNever,
                          base::relaxed);
    }
  }
  make_cold(unneeded);
}

void Pool::make_cold(Stack* first) {
  std::array<std::byte*, 64> cold;
  while (first != nullptr) {
    std::size_t filled = 0;
    while (first != nullptr && filled < cold.size()) {
      Stack* stack = first;
      first = stack->next;  // read before the memory goes
      cold[filled++] = memory_of(stack);
      base::close_fiber(stack->fiber);
      madvise(stack->low, stack_size_ - guard_bytes(), MADV_DONTNEED);
    }
    std::lock_guard hold(lock_);
    cold_.insert(cold_.end(), cold.begin(), cold.begin() + static_cast<std::ptrdiff_t>(filled));
  }
}

Pool::Usage Pool::usage() {
  std::lock_guard hold(lock_);
  return Usage{.stacks = carved_, .warm = warm_count_, .cold = cold_.size()};
}

Stack* Cache::take(Pool& pool) {
  if (size_ != 0) return stacks_[--size_];
  {
    std::lock_guard hold(pool.lock_);
    while (size_ < kRefill) {
      Stack* stack = pool.take_warm_locked();
      if (stack == nullptr) break;
      stacks_[size_++] = stack;
    }
  }
  return size_ != 0 ? stacks_[--size_] : pool.take();
}

void Cache::give(Pool& pool, Stack* stack) {
  if (size_ == kCapacity) give_oldest(pool, kCapacity / 2);
  stacks_[size_++] = stack;
}

void Cache::give_all(Pool& pool) {
  if (size_ != 0) give_oldest(pool, size_);
}

void Cache::give_oldest(Pool& pool, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    stacks_[i]->next = i + 1 < count ? stacks_[i + 1] : nullptr;
  pool.give(stacks_[0]);
  std::copy(stacks_.begin() + static_cast<std::ptrdiff_t>(count),
            stacks_.begin() + static_cast<std::ptrdiff_t>(size_), stacks_.begin());
  size_ -= count;
}

}  // namespace magpie::stack
