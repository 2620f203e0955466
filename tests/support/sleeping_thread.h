// sleeping_thread.h: a plain thread that is known to sleep in the kernel: it waits for what it was
// made to wait for.
#pragma once

#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "support/rt_test.h"
#include "support/thread_state.h"

namespace magpie::support {

class SleepingThread {
 public:
  // f blocks. Returns when it does.
  template <class F>
  explicit SleepingThread(F f)
      : thread_([this, call = std::move(f)]() mutable {
          tid_.store(gettid(), std::memory_order_release);
          call();
          over_.store(true, std::memory_order_release);
        }) {
    EXPECT_TRUE(eventually([this] {
      pid_t tid = tid_.load(std::memory_order_acquire);
      return tid != 0 && thread_sleeps(tid);
    }));
  }
  ~SleepingThread() {
    if (!thread_.joinable()) return;
    if (goes_on()) {
      thread_.join();
    } else {
      std::abort();  // it waits for ever; what it waits for is about to go
    }
  }
  SleepingThread(const SleepingThread&) = delete;
  SleepingThread& operator=(const SleepingThread&) = delete;

  // False: it still waits, after a minute.
  [[nodiscard]] bool goes_on() {
    return eventually([this] { return over_.load(std::memory_order_acquire); });
  }
  bool is_over() const { return over_.load(std::memory_order_acquire); }

 private:
  std::atomic<pid_t> tid_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace magpie::support
