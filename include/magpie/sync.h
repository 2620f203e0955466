// sync.h: goroutines wait for each other. Everything here works from plain threads too, which then block.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include <magpie/go.h>

namespace magpie {

// Waits until a number of things are done. Starts at zero.
class WaitGroup {
 public:
  WaitGroup() = default;
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;

  // Adds n, which may be negative. Never blocks. Wakes the waiters when the count becomes zero; throws
  // std::logic_error, and takes the change back, if it would fall below zero or pass 2^31 - 1.
  void add(std::int64_t n);

  // The same as add(-1).
  void done() { add(-1); }

  // Blocks until the count is zero; returns at once if it is. After it returned, and all other waiters too,
  // the group may be used again or destroyed.
  void wait();

  // Starts a goroutine that is counted until f has returned, or thrown.
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
  // What happens in it: src/sync/wait_group.cc.
  std::atomic<std::uint64_t> state_{0};
  std::atomic<std::uint32_t> lock_{0};
  void* waiters_ = nullptr;
};

}  // namespace magpie
