// go.h: starts goroutines.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/task.h>
#include <magpie/detail/with_context.h>
#include <magpie/runtime.h>

namespace magpie {

namespace detail {
template <class F, class... Args>
auto spawn_with(const GoOptions* options, F&& f, Args&&... args);
}  // namespace detail

// Starts a goroutine that calls f(args...). Both are copied or moved into the goroutine; a small f
// needs no allocation. Does not wait for the goroutine, but yields to others when the caller has
// started goroutines for longer than its time slice. Any thread may call it while a runtime runs.
// An exception that leaves f ends the program with the goroutine's number and name, unless
// on_uncaught() says otherwise. Throws std::logic_error if no runtime runs, std::invalid_argument
// if f is an empty std::function or a null pointer, std::bad_alloc.
template <class F, class... Args>
requires std::invocable<std::decay_t<F>, std::decay_t<Args>...>
void go(F&& f, Args&&... args) {
  detail::start_detached(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
}

// As go(f), with a name for dumps and messages, or a stack size. Throws std::invalid_argument also
// for a stack size that is not whole pages or is below 32 KiB.
template <class F, class... Args>
requires std::invocable<std::decay_t<F>, std::decay_t<Args>...>
void go(const GoOptions& options, F&& f, Args&&... args) {
  detail::start_detached(&options, std::forward<F>(f), std::forward<Args>(args)...);
}

// Owns a goroutine and its result. The destructor joins, as std::jthread's does, and drops the
// goroutine's exception. A goroutine that destroys the handle to itself ends the program. Where an
// exception is dropped, here or after detach(), code that is compiled without NDEBUG says so on
// stderr. Movable. One thread may use it at a time.
template <class R>
class [[nodiscard]] JoinHandle {
 public:
  // What try_join() returns, and join() with an error code.
  using Attempt = std::conditional_t<
      std::is_void_v<R>, bool,
      std::conditional_t<std::is_reference_v<R>, std::add_pointer_t<R>, std::optional<R>>>;

  JoinHandle() = default;
  JoinHandle(JoinHandle&& other) noexcept : ref_(std::exchange(other.ref_, {})) {}
  JoinHandle& operator=(JoinHandle&& other) noexcept {
    if (this != &other) {
      finish();
      ref_ = std::exchange(other.ref_, {});
    }
    return *this;
  }
  ~JoinHandle() { finish(); }

  bool joinable() const { return ref_.task != nullptr; }

  // Blocks until the goroutine has ended; returns its result or rethrows its exception. If the
  // goroutine has not started yet, the joiner may run it in place, on its own stack: then it has at
  // least three quarters of Options::stack_size, less the guard. A goroutine with a
  // GoOptions::stack_size always has a stack of its own. Throws std::logic_error if the handle is
  // empty, the goroutine's run() has ended, or the goroutine itself is the caller.
  R join() {
    check_not_empty();
    detail::TaskRef ref = std::exchange(ref_, {});
    return take(ref, detail::wait_for_task(ref));
  }

  // As join(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns nullopt (void: false; a reference: null). The goroutine goes on then, and
  // the handle still owns it. Never runs the goroutine in place.
  R join(const Context& context) {
    std::error_code error;
    detail::Joined joined = wait(context, error);
    if (error) detail::throw_over(error, "JoinHandle::join");
    return take(std::exchange(ref_, {}), joined);
  }
  Attempt join(const Context& context, std::error_code& error) {
    detail::Joined joined = wait(context, error);
    return attempt(error ? detail::Joined::not_yet : joined);
  }

  // As join(), until time is up; try_join() does not wait. Nullopt (void: false; a reference:
  // null): the goroutine goes on, and the handle still owns it. Never runs the goroutine in place.
  // Any clock will do.
  Attempt try_join() { return attempt(wait_until_ns(0)); }
  template <class Rep, class Period>
  Attempt try_join_for(std::chrono::duration<Rep, Period> duration) {
    return attempt(wait_until_ns(detail::deadline_after(duration)));
  }
  template <class Clock, class Duration>
  Attempt try_join_until(std::chrono::time_point<Clock, Duration> time) {
    detail::Joined joined = detail::Joined::not_yet;
    detail::wait_until(time, [&](detail::DeadlineNs deadline) {
      joined = wait_until_ns(deadline);
      return joined != detail::Joined::not_yet;
    });
    return attempt(joined);
  }

  // Lets the goroutine go on alone and drops its result or exception. Never blocks. Throws
  // std::logic_error if the handle is empty.
  void detach() {
    if (ref_.task == nullptr) throw std::logic_error("magpie: detach() on an empty JoinHandle");
    detail::detach_task(std::exchange(ref_, {}));
  }

 private:
  template <class F, class... Args>
  friend auto detail::spawn_with(const GoOptions* options, F&& f, Args&&... args);

  explicit JoinHandle(detail::TaskRef ref) : ref_(ref) {}

  struct Freed {
    detail::Task* task;
    detail::Joined joined;
    ~Freed() {
      detail::JoinablePayload<R>::clear(task);
      detail::free_joined_task(task, joined);
    }
  };

  void check_not_empty() const {
    if (ref_.task == nullptr) throw std::logic_error("magpie: join() on an empty JoinHandle");
  }

  static void check_not_itself(detail::TaskRef ref, detail::Joined joined) {
    if (joined != detail::Joined::by_itself) return;
    detail::detach_task(ref);
    throw std::logic_error("magpie: join(): a goroutine cannot wait for its own end");
  }

  detail::Joined wait(const Context& context, std::error_code& error) {
    check_not_empty();
    detail::Joined joined = detail::Joined::not_yet;
    detail::wait_with(context, error, [&](sched::CancelSource* source) {
      joined = detail::wait_for_task(ref_, {.source = source});
      return joined != detail::Joined::not_yet;
    });
    return joined;
  }

  detail::Joined wait_until_ns(detail::DeadlineNs deadline) {
    check_not_empty();
    return detail::wait_for_task(ref_, {.deadline = deadline});
  }

  Attempt attempt(detail::Joined joined) {
    if (joined == detail::Joined::not_yet) return {};
    detail::TaskRef ref = std::exchange(ref_, {});
    if constexpr (std::is_void_v<R>) {
      take(ref, joined);
      return true;
    } else if constexpr (std::is_reference_v<R>) {
      R result = take(ref, joined);
      return std::addressof(result);
    } else {
      return take(ref, joined);
    }
  }

  static R take(detail::TaskRef ref, detail::Joined joined) {
    if (joined == detail::Joined::dropped)
      throw std::logic_error("magpie: join(): the goroutine was dropped when its run() ended");
    check_not_itself(ref, joined);
    Freed freed{ref.task, joined};
    return detail::JoinablePayload<R>::of(ref.task).outcome->take();
  }

  void finish() {
    if (ref_.task == nullptr) return;
    detail::TaskRef ref = std::exchange(ref_, {});
    detail::Joined joined = detail::wait_for_task(ref);
    if (joined == detail::Joined::dropped) return;
    check_not_itself(ref, joined);  // which ends the program, as ~jthread does
    Freed freed{ref.task, joined};
  }

  detail::TaskRef ref_;
};

template <class F, class... Args>
auto detail::spawn_with(const GoOptions* options, F&& f, Args&&... args) {
  using Result = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
  return JoinHandle<Result>(
      start_joinable<Result>(options, std::forward<F>(f), std::forward<Args>(args)...));
}

// Starts a goroutine whose result or exception join() returns. Else as go().
template <class F, class... Args>
requires std::invocable<std::decay_t<F>, std::decay_t<Args>...>
auto spawn(F&& f, Args&&... args) {
  return detail::spawn_with(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
}

template <class F, class... Args>
requires std::invocable<std::decay_t<F>, std::decay_t<Args>...>
auto spawn(const GoOptions& options, F&& f, Args&&... args) {
  return detail::spawn_with(&options, std::forward<F>(f), std::forward<Args>(args)...);
}

// Sets what happens to exceptions that leave goroutines from now on, instead of ending the program
// where they are thrown. The failing goroutine calls the handler after unwinding, inside a catch
// block, and ends when the handler returns. An empty function restores the default.
MAGPIE_API void on_uncaught(std::function<void(std::exception_ptr)> handler);

}  // namespace magpie
