// once.cc: a mutex around the call, and the mark of its holder.
#include <stdexcept>

#include <magpie/once.h>
#include <magpie/runtime.h>

#include "sched/presence.h"

namespace magpie {
namespace {

// Tells the caller from every other goroutine and thread that runs now: goroutines have odd
// numbers, threads an address. Also tells a goroutine from a goroutine of an earlier run() with the
// same id, which may have been dropped inside the function.
std::uint64_t caller_mark() {
  constexpr int kIdBits = 40;
  if (std::uint64_t id = goroutine_id(); id != 0)
    return (id ^ sched::current_run() << kIdBits) << 1 | 1;
  alignas(2) static thread_local char mark;
  return reinterpret_cast<std::uint64_t>(&mark);
}

}  // namespace

std::uint64_t Once::new_caller() const {
  std::uint64_t caller = caller_mark();
  // relaxed: only what the caller wrote itself can be equal
  if (caller_.load(std::memory_order_relaxed) == caller) {
    throw std::logic_error("magpie: Once: the function calls call() on the Once that calls it");
  }
  return caller;
}

void Once::begin() {
  const std::uint64_t caller = new_caller();
  if (!detail::try_lock(mutex_)) detail::lock_slow(mutex_, detail::LockedBy::once);
  caller_.store(caller, std::memory_order_relaxed);
  detail::note_owner(mutex_);
}

bool Once::begin(const Context& context, std::error_code& error) {
  const std::uint64_t caller = new_caller();
  return detail::wait_with(context, error, [&](sched::CancelSource* source) {
    if (!detail::lock_with(mutex_, source, detail::LockedBy::once)) return false;
    caller_.store(caller, std::memory_order_relaxed);
    detail::note_owner(mutex_);
    return true;
  });
}

void Once::end() noexcept {
  caller_.store(0, std::memory_order_relaxed);
  detail::unlock(mutex_);
}

}  // namespace magpie
