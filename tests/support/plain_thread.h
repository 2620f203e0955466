// plain_thread.h: a thread that is none of the runtime's, beside goroutines.
//
// Goroutines may not block in std::thread::join: at one proc nothing else would run. This one lets
// others run meanwhile.
#pragma once

#include <magpie/runtime.h>

#include <atomic>
#include <thread>
#include <utility>

namespace magpie::support {

class PlainThread {
 public:
  template <class F>
  explicit PlainThread(F f)
      : thread_([this, call = std::move(f)]() mutable {
          call();
          over_.store(true, std::memory_order_release);
        }) {}
  ~PlainThread() { join(); }
  PlainThread(const PlainThread&) = delete;
  PlainThread& operator=(const PlainThread&) = delete;

  void join() {
    if (!thread_.joinable()) return;
    while (!over_.load(std::memory_order_acquire)) magpie::yield();
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace magpie::support
