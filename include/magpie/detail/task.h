// task.h: how a goroutine stores a callable and its result. Not part of the API.
//
// The runtime gives every goroutine kInlineBytes for its payload. A callable that fits is built
// there; any other is built on the heap, and the payload holds a pointer to it. The runtime sees
// one function, the body, with two orders: run, or drop. Drop destroys what is in the payload: a
// call that will never run, or an outcome that nobody wants any more. The body of a detached
// goroutine destroys its call after running it.
#pragma once

#include <magpie/detail/cxx20.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/detail/callable.h>
#include <magpie/detail/caught.h>
#include <magpie/detail/with_context.h>

namespace magpie {

// For go() and spawn().
struct GoOptions {
  std::string name = {};       // shown in dumps and error messages
  std::size_t stack_size = 0;  // 0: as in Options; else a stack of this many bytes, whole pages
};

namespace detail {

struct Task;  // the runtime's record of a goroutine

enum class TaskOrder : unsigned char { run, drop };
using TaskBody = void (*)(void* payload, TaskOrder order);

inline constexpr std::size_t kInlineBytes = 64;
inline constexpr std::size_t kInlineAlign = 16;

// A goroutine that is not started. Throws std::logic_error when no runtime runs, std::bad_alloc,
// std::invalid_argument for bad options.
[[nodiscard]] MAGPIE_API Task* make_task();
[[nodiscard]] MAGPIE_API Task* make_task(const GoOptions& options);
[[nodiscard]] inline Task* make_task(const GoOptions* options) {
  return options == nullptr ? make_task() : make_task(*options);
}
inline constexpr std::size_t kPayloadOffset = 64;
inline void* payload_of(Task* task) noexcept {
  return reinterpret_cast<std::byte*>(task) + kPayloadOffset;
}
MAGPIE_API void unmake_task(Task* task) noexcept;  // instead of starting it

MAGPIE_API void start_task(Task* task, TaskBody body) noexcept;

// A joinable goroutine, and which run() it belongs to.
struct TaskRef {
  Task* task = nullptr;
  std::uint64_t generation = 0;
};
// The caller detaches it, or waits for it and frees it.
MAGPIE_API TaskRef start_joinable_task(Task* task, TaskBody body) noexcept;
MAGPIE_API void detach_task(TaskRef ref) noexcept;

// How waiting for a goroutine ended.
enum class Joined : unsigned char {
  dropped,      // its run() has ended, and its record is gone
  by_us,        // it has ended, and the caller owns the record
  by_outsider,  // the same for a plain thread: run() waits until it frees the record
  not_yet,      // it goes on: the limit was reached first
  by_itself     // it is the caller, which cannot wait for its own end
};
[[nodiscard]] MAGPIE_API Joined wait_for_task(TaskRef ref);
[[nodiscard]] MAGPIE_API Joined wait_for_task(TaskRef ref, const WaitLimit& limit);
MAGPIE_API void drop_what_is_left(Task* task) noexcept;  // by order to its body
MAGPIE_API void free_joined_task(Task* task,
                                 Joined joined) noexcept;  // nothing is left in its payload

// T in the payload if it fits, else on the heap.
template <class T>
struct Stored {
  static constexpr bool kInline = sizeof(T) <= kInlineBytes && alignof(T) <= kInlineAlign;

  template <class... Args>
  static void build(void* payload, Args&&... args) {
    if constexpr (kInline) {
      new (payload) T(std::forward<Args>(args)...);
    } else {
      new (payload) T*(new T(std::forward<Args>(args)...));
    }
  }
  static T& in(void* payload) {
    if constexpr (kInline) {
      return *std::launder(static_cast<T*>(payload));
    } else {
      return **std::launder(static_cast<T**>(payload));
    }
  }
  static void destroy(void* payload) noexcept {
    if constexpr (kInline) {
      std::destroy_at(std::addressof(in(payload)));
    } else {
      delete std::addressof(in(payload));
    }
  }
};

template <class F, class... Args>
struct Call {
  template <class G, class... As>
  explicit Call(G&& f, As&&... as)
      : callable(std::forward<G>(f)), arguments(std::forward<As>(as)...) {}

  decltype(auto) operator()() {
    return std::apply(
        [this](Args&... as) -> decltype(auto) {
          return std::invoke(std::move(callable), std::move(as)...);
        },
        arguments);
  }

  [[no_unique_address]] F callable;
  [[no_unique_address]] std::tuple<Args...> arguments;
};

// Builds a T in a new task's payload; the task is unmade when the constructor throws.
template <class T, class... Args>
Task* make_task_with(const GoOptions* options, Args&&... args) {
  Task* task = make_task(options);
  if constexpr (std::is_nothrow_constructible_v<T, Args&&...> && Stored<T>::kInline) {
    Stored<T>::build(payload_of(task), std::forward<Args>(args)...);
  } else {
    try {
      Stored<T>::build(payload_of(task), std::forward<Args>(args)...);
    } catch (...) {
      unmake_task(task);
      throw;
    }
  }
  return task;
}

template <class F, class... Args>
void start_detached(const GoOptions* options, F&& f, Args&&... args) {
  using Body = Call<std::decay_t<F>, std::decay_t<Args>...>;
  check_not_empty(f);
  Task* task = make_task_with<Body>(options, std::forward<F>(f), std::forward<Args>(args)...);
  start_task(task, [](void* payload, TaskOrder order) {
    struct Destroy {
      void* payload;
      ~Destroy() { Stored<Body>::destroy(payload); }
    } destroy{payload};
    if (order == TaskOrder::run) Stored<Body>::in(payload)();
  });
}

// Says on stderr, or to the log hook, that an exception is lost since nobody joined its goroutine.
MAGPIE_API void warn_of_lost(std::exception_ptr error) noexcept;

// What a joinable goroutine leaves behind: a value, an exception, or nothing if it was dropped. A
// program that is built without NDEBUG is told of exceptions that nobody took.
template <class R>
class Outcome {
 public:
  Outcome() noexcept {}
  Outcome(const Outcome&) = delete;
  Outcome& operator=(const Outcome&) = delete;
  ~Outcome() {
    if (kind_ == Kind::value) std::destroy_at(std::addressof(value_));
    if (kind_ != Kind::error) return;
#ifndef NDEBUG
    if (error_ != nullptr) warn_of_lost(error_);
#endif
    std::destroy_at(&error_);
  }

  template <class F>
  void fill_from(F& call) noexcept {
    try {
      if constexpr (std::is_void_v<R>) {
        call();
        ::new (static_cast<void*>(std::addressof(value_))) Value{};
      } else if constexpr (std::is_reference_v<R>) {
        R result = call();
        ::new (static_cast<void*>(std::addressof(value_))) Value(std::addressof(result));
      } else {
        ::new (static_cast<void*>(std::addressof(value_))) Value(call());
      }
      kind_ = Kind::value;
    } catch (...) {
      new (&error_) std::exception_ptr(caught());
      kind_ = Kind::error;
    }
  }

  R take() {
    if (kind_ == Kind::error) std::rethrow_exception(std::exchange(error_, nullptr));
    if constexpr (std::is_reference_v<R>) {
      return static_cast<R>(*value_);
    } else if constexpr (!std::is_void_v<R>) {
      return std::move(value_);
    }
  }

 private:
  enum class Kind : unsigned char { nothing, value, error };
  struct Void {};
  using Value =
      std::conditional_t<std::is_void_v<R>, Void,
                         std::conditional_t<std::is_reference_v<R>, std::add_pointer_t<R>,
                                            std::remove_cv_t<R>>>;  // it is built, and moved from
  union {
    Value value_;
    std::exception_ptr error_;
  };
  Kind kind_ = Kind::nothing;
};

// The callable until it has run, then its outcome.
template <class R, class Body>
struct JoinableCall {
  template <class... Args>
  explicit JoinableCall(Args&&... args) : body(std::in_place, std::forward<Args>(args)...) {}

  void run() noexcept {
    outcome.fill_from(*body);
    body.reset();  // what it captured ends before the joiner goes on
  }

  Outcome<R> outcome;
  std::optional<Body> body;
};

// In the payload of a joinable task: a pointer to its outcome, for code that knows only R, and the
// call if it fits.
template <class R>
struct JoinablePayload {
  static constexpr std::size_t kBytes = kInlineBytes - kInlineAlign;

  alignas(kInlineAlign) Outcome<R>* outcome;
  alignas(kInlineAlign) std::byte call[kBytes];

  static JoinablePayload& of(Task* task) { return in(payload_of(task)); }
  static JoinablePayload& in(void* payload) {
    return *std::launder(static_cast<JoinablePayload*>(payload));
  }

  // For a goroutine that has run. A call in the payload has destroyed itself; only its outcome is
  // left.
  static void clear(Task* task) noexcept {
    JoinablePayload& payload = of(task);
    if (payload.has_outcome()) {
      std::destroy_at(payload.outcome);
    } else {
      drop_what_is_left(task);
    }
  }

 private:
  bool has_outcome() const {
    return reinterpret_cast<std::uintptr_t>(outcome) - reinterpret_cast<std::uintptr_t>(call) <
           kBytes;
  }
};

template <class R, class F, class... Args>
TaskRef start_joinable(const GoOptions* options, F&& f, Args&&... args) {
  using Whole = JoinableCall<R, Call<std::decay_t<F>, std::decay_t<Args>...>>;
  using Payload = JoinablePayload<R>;
  constexpr bool fits = sizeof(Whole) <= Payload::kBytes && alignof(Whole) <= kInlineAlign;

  check_not_empty(f);
  Task* task = make_task(options);
  Payload* payload = new (payload_of(task)) Payload;
  Whole* whole;
  try {
    if constexpr (fits) {
      whole = new (payload->call) Whole(std::forward<F>(f), std::forward<Args>(args)...);
    } else {
      whole = new Whole(std::forward<F>(f), std::forward<Args>(args)...);
      new (payload->call) Whole*(whole);
    }
  } catch (...) {
    unmake_task(task);
    throw;
  }
  payload->outcome = &whole->outcome;
  return start_joinable_task(task, [](void* place, TaskOrder order) {
    std::byte* bytes = Payload::in(place).call;
    Whole* mine;
    if constexpr (fits) {
      mine = std::launder(reinterpret_cast<Whole*>(bytes));
    } else {
      mine = *std::launder(reinterpret_cast<Whole**>(bytes));
    }
    if (order == TaskOrder::run) {
      mine->run();
    } else if constexpr (fits) {
      std::destroy_at(mine);
    } else {
      delete mine;
    }
  });
}

}  // namespace detail
}  // namespace magpie
