#include "stack/pools.h"

#include <algorithm>
#include <array>

#include "base/cpu.h"

namespace magpie::stack {
namespace {

// Stacks from the pool may not have been used for long. This fetches what a goroutine touches first
// when it begins there and blocks soon, while the goroutine before it runs.
void prefetch_frames(const Stack* stack) {
  constexpr std::size_t kLines = 8;
  auto* top = static_cast<const std::byte*>(stack->top());
  for (std::size_t i = 1; i <= kLines; ++i) base::prefetch_to_write(top - i * base::kCacheLine);
}

}  // namespace

void Pools::use(std::uint32_t count) {
  if (count > this->count()) count_.store(std::min(count, kMost), base::relaxed);
}

Stack* Pools::take(std::uint32_t number) {
  Stack* stack = pools_[number].take();
  for (std::uint32_t other = 0; stack == nullptr && other < count(); ++other)
    if (other != number) stack = pools_[other].take();
  return stack;
}

void Pools::give(std::span<Stack* const> stacks) {
  if (count() == 1) return pools_[0].give(stacks);
  constexpr std::size_t kAtOnce = 64;
  std::array<Stack*, kAtOnce> some;
  for (std::uint32_t number = 0; number < count(); ++number) {
    std::size_t found = 0;
    for (Stack* stack : stacks) {
      if (stack->pool_number != number) continue;
      some[found++] = stack;
      if (found == kAtOnce) pools_[number].give({some.data(), std::exchange(found, 0)});
    }
    if (found != 0) pools_[number].give({some.data(), found});
  }
}

void Pools::trim(std::int64_t now_ns) {
  for (std::uint32_t number = 0; number < count(); ++number) pools_[number].trim(now_ns);
}

std::int64_t Pools::next_trim_ns() const {
  std::int64_t next_ns = pools_[0].next_trim_ns();
  for (std::uint32_t number = 1; number < count(); ++number)
    next_ns = std::min(next_ns, pools_[number].next_trim_ns());
  return next_ns;
}

Stack* Cache::take(Pools& pools, std::uint32_t number) {
  if (size_ == 0) [[unlikely]] {
    refill(pools.of(number));
    if (size_ == 0) return pools.take(number);
  }
  Stack* stack = stacks_[--size_];
  if (size_ < untouched_) {
    untouched_ = size_;
    if (size_ != 0) prefetch_frames(stacks_[size_ - 1]);
  }
  return stack;
}

void Cache::refill(Pool& pool) {
  size_ = untouched_ = pool.take_warm({stacks_.data(), kRefill});
  for (std::size_t i = 0; i < size_; ++i) base::prefetch_to_write(stacks_[i]);
}

void Cache::give(Pools& pools, Stack* stack) {
  if (size_ == kCapacity) give_oldest(pools, kCapacity / 2);
  stacks_[size_++] = stack;
}

void Cache::give_all(Pools& pools) {
  if (size_ != 0) give_oldest(pools, size_);
}

void Cache::give_oldest(Pools& pools, std::size_t count) {
  pools.give({stacks_.data(), count});
  std::copy(stacks_.begin() + static_cast<std::ptrdiff_t>(count),
            stacks_.begin() + static_cast<std::ptrdiff_t>(size_), stacks_.begin());
  size_ -= count;
  untouched_ -= std::min(untouched_, count);
}

}  // namespace magpie::stack
