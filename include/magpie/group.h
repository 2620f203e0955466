// group.h: structured concurrency: goroutines that are waited for together, and cancelled together.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include <magpie/context.h>
#include <magpie/detail/caught.h>
#include <magpie/go.h>
#include <magpie/sync.h>

namespace magpie {

// Starts goroutines and waits for all of them. The first exception of one cancels the others, through context(), and is
// thrown by wait(). Whoever made the group waits; go() may be called by its goroutines too.
class TaskGroup {
 public:
  // Its context is cancelled with the given one. Throws std::bad_alloc.
  explicit TaskGroup(const Context& parent = Context::background());
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Cancels and waits, if wait() has not been called; an exception is then lost.
  ~TaskGroup();

  // Starts f(), or f(context), in a goroutine. Blocks while as many run as set_limit() allows. Throws as magpie::go.
  template <class F>
  requires std::is_invocable_v<std::decay_t<F>> || std::is_invocable_v<std::decay_t<F>, Context>
  void go(F&& f) {
    take_slot();
    start(std::forward<F>(f));
  }

  // The same without waiting. False: as many run as are allowed; f is not called.
  template <class F>
  requires std::is_invocable_v<std::decay_t<F>> || std::is_invocable_v<std::decay_t<F>, Context>
  bool try_go(F&& f) {
    if (!try_take_slot()) return false;
    start(std::forward<F>(f));
    return true;
  }

  // Blocks until all goroutines of the group have ended; cancels its context; throws the first exception of any of
  // them. The group may then be used again, with a new context.
  void wait();

  // At most n at a time, from now on; below 1: any number. Throws std::logic_error while goroutines of the group run.
  void set_limit(std::int64_t n);

  // Cancelled when one of them throws, or by wait(), or with the parent. For its goroutines, and to cancel them.
  Context context() const;

 private:
  template <class F>
  void start(F&& f) {
    running_.add(1);
    try {
      magpie::go([this, call = std::forward<F>(f), context = context()]() mutable {
        try {
          if constexpr (std::is_invocable_v<std::decay_t<F>, Context>) {
            (void)std::move(call)(context);
          } else {
            (void)std::move(call)();
          }
        } catch (...) {
          note_failure(detail::caught());
        }
        end_one();
      });
    } catch (...) {
      end_one();
      throw;
    }
  }

  void take_slot();
  bool try_take_slot();
  void end_one();
  void note_failure(std::exception_ptr error);

  const Context parent_;
  WaitGroup running_;
  std::unique_ptr<Semaphore> slots_;     // null: no limit
  std::atomic<std::int64_t> active_{0};  // atomic, a count

  mutable Mutex mutex_;
  // guarded by mutex_
  Context context_;
  std::exception_ptr first_error_;
};

}  // namespace magpie
