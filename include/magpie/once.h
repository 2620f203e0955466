// once.h: calls a function once, however many callers there are.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/mutex.h>

namespace magpie {

// Calls at most one function to its end.
class MAGPIE_API Once {
 public:
  constexpr Once() = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  // Calls f(args...) unless an earlier call has been completed. Blocks while another caller's
  // function runs. When it returns, a call has been completed and its effects are visible. If f
  // throws, the exception leaves call(), and the next caller tries again. Throws std::logic_error
  // if f calls call() on the same Once.
  template <class F, class... Args>
  void call(F&& f, Args&&... args) {
    if (done_.load(std::memory_order_acquire)) [[likely]]  // with the release in Running
      return;
    Running running(*this);
    if (!running.is_first()) return;
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    running.complete();
  }

  // True if a call has been completed. Never blocks.
  bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  // Holds the mutex of the Once.
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

  // See src/sync/once.cc. atomic, published: written by the holder of mutex_
  std::atomic<bool> done_{false};
  std::atomic<std::uint64_t> caller_{0};
  detail::MutexState mutex_;
};

}  // namespace magpie
