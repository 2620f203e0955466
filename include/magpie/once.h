// once.h: calls a function once, however many callers there are.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <system_error>
#include <type_traits>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/detail/with_context.h>
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
  requires(!std::same_as<std::remove_cvref_t<F>, Context>) void call(F&& f, Args&&... args) {
    if (done_.load(std::memory_order_acquire)) [[likely]]  // with the release in Running
      return;
    begin();
    Running running(*this);
    if (!running.is_first()) return;
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    running.complete();
  }
  // As call(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns false. Only waiting for another caller ends with the context: f, called
  // here, has to watch its context itself. A completed call counts also when the context is over.
  template <class F>
  void call(const Context& context, F&& f) {
    std::error_code error;
    if (!call(context, std::forward<F>(f), error)) detail::throw_over(error, "Once::call");
  }
  template <class F>
  bool call(const Context& context, F&& f, std::error_code& error) {
    error.clear();
    if (done_.load(std::memory_order_acquire)) [[likely]]  // with the release in Running
      return true;
    if (!begin(context, error)) return false;
    Running running(*this);
    if (!running.is_first()) return true;
    std::invoke(std::forward<F>(f));
    running.complete();
    return true;
  }

  // True if a call has been completed. Never blocks.
  bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  // Holds the mutex of the Once, after begin().
  class Running {
   public:
    explicit Running(Once& once) : once_(once) {}
    ~Running() { once_.end(); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    bool is_first() const { return !once_.done_.load(std::memory_order_relaxed); }
    void complete() { once_.done_.store(true, std::memory_order_release); }

   private:
    Once& once_;
  };

  // The mark of the caller. Throws std::logic_error if the caller is the function that runs.
  std::uint64_t new_caller() const;
  void begin();
  // False: the context is over.
  bool begin(const Context& context, std::error_code& error);
  void end() noexcept;

  // See src/sync/once.cc. atomic, published: written by the holder of mutex_
  std::atomic<bool> done_{false};
  std::atomic<std::uint64_t> caller_{0};
  detail::MutexState mutex_;
};

}  // namespace magpie
