// wait_group.h: waits until a number of things are done.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include <magpie/detail/wait_storage.h>
#include <magpie/go.h>

namespace magpie {

// A count, from zero on, and those who wait for it to become zero again.
class WaitGroup {
 public:
  constexpr WaitGroup() = default;
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;

  // Adds n, which may be negative. Never blocks. Wakes the waiters when the count becomes zero. Throws
  // std::logic_error and changes nothing, as others see it too, if the count would fall below zero or pass 2^31 - 1.
  // What happened before it is seen by those whom it wakes.
  void add(std::int64_t n);

  // The same as add(-1).
  void done() { add(-1); }

  // Blocks until the count is zero; returns at once if it is. Once it has returned the group may be used again, at
  // once, also while other waiters have yet to return; once all have returned, it may be destroyed.
  void wait();

  // Starts a goroutine that is counted until f has returned, or thrown. Throws what magpie::go() throws.
  template <class F>
  void go(F&& f) {
    add(1);
    try {
      magpie::go([this, call = std::forward<F>(f)]() mutable {
        try {
          std::move(call)();
        } catch (...) {
          done();
          throw;
        }
        done();
      });
    } catch (...) {
      done();
      throw;
    }
  }

 private:
  bool add_and_wake(std::int64_t n);

  // What happens in it: src/sync/wait_group.cc.
  std::atomic<std::uint64_t> state_{0};  // atomic [wait-group]
  std::atomic<std::uint32_t> lock_{0};   // atomic [lock]
  detail::WaitStorage waiters_;
};

}  // namespace magpie
