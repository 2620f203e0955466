// once.h: something that is done once, by whoever comes first.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include <magpie/mutex.h>

namespace magpie {

class Once {
 public:
  constexpr Once() = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  // Calls f(args...), unless a call has been completed before; returns when one has been, and what it did is seen. Others
  // who come meanwhile block. If f throws, the exception leaves call(), nothing counts as done, and the next caller
  // tries again. Throws std::logic_error if f itself calls call() on this Once.
  template <class F, class... Args>
  void call(F&& f, Args&&... args) {
    if (done_.load(std::memory_order_acquire)) [[likely]]  // with the release in Running
      return;
    Running running(*this);
    if (!running.is_first()) return;
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    running.complete();
  }

  // Whether a call has been completed.
  bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  // One at a time.
  class Running {
   public:
    explicit Running(Once& once) : once_(once) { once.begin(); }
    ~Running() { once_.end(); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    bool is_first() const { return !once_.done_.load(std::memory_order_relaxed); }
    void complete() { once_.done_.store(true, std::memory_order_release); }

   private:
    Once& once_;
  };

  void begin();
  void end() noexcept;

  // What happens in it: src/sync/once.cc. atomic, published: by the one who holds mutex_
  std::atomic<bool> done_{false};
  std::atomic<std::uint64_t> caller_{0};
  detail::MutexState mutex_;
};

}  // namespace magpie
