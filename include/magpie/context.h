// context.h: tells all goroutines that work on one task that it is over: cancelled, or too late.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <magpie/chan.h>
#include <magpie/detail/api.h>
#include <magpie/detail/callable.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/shared_function.h>
#include <magpie/detail/with_context.h>
#include <magpie/time.h>

namespace magpie {

namespace detail {

struct ContextNode;  // src/flow/context.cc

// A key and its value.
struct MAGPIE_API ContextValue {
  virtual ~ContextValue() = default;
  virtual bool has_key(const std::type_info& key_type, const void* key) const = 0;
  // Null: the value is of another type.
  virtual const void* value_as(const std::type_info& value_type) const = 0;
};

template <class Key, class Value>
struct KeyedValue final : ContextValue {
  template <class K, class V>
  KeyedValue(K&& k, V&& v) : key(std::forward<K>(k)), value(std::forward<V>(v)) {}
  bool has_key(const std::type_info& key_type, const void* wanted) const override {
    return key_type == typeid(Key) && key == *static_cast<const Key*>(wanted);
  }
  const void* value_as(const std::type_info& value_type) const override {
    return value_type == typeid(Value) ? std::addressof(value) : nullptr;
  }
  Key key;
  Value value;
};

template <class T>
concept ContextText = std::same_as<T, std::string> || std::same_as<T, std::string_view> ||
    std::same_as<T, const char*> || std::same_as<T, char*>;

// Text in any form is kept as a std::string.
template <class T>
using KeptAs = std::conditional_t<ContextText<std::decay_t<T>>, std::string, std::decay_t<T>>;

template <class K>
concept ContextKey = std::equality_comparable<KeptAs<K>>;

}  // namespace detail

class Context;

// A function that waits for the end of a context (Context::after_func). One goroutine or thread may
// use it at a time.
class MAGPIE_API AfterFunc {
 public:
  AfterFunc(AfterFunc&& other) noexcept;
  AfterFunc& operator=(AfterFunc&& other) noexcept;
  // As stop().
  ~AfterFunc();

  // Keeps the function from being called. True: it has not been and will not be called. False: the
  // context has ended, or stop() was called before. Does not wait for a function that already runs
  // in its goroutine. Never blocks for long.
  bool stop();

 private:
  friend class Context;
  struct State;  // src/flow/context.cc
  explicit AfterFunc(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;  // null: stopped, or moved from
};

// Every blocking call of the core takes a context too: Chan::send and recv, lock, acquire, wait,
// join, sleep_for, submit. For all of them:
// - If the context is over, the call fails before it is tried, even if it would not have to wait.
// - Cancelling ends the wait at once. The call throws std::system_error with err() as its code and
//   its own name in the text. With a trailing std::error_code& it returns false, or nothing, and
//   stores the code there.
// - An error means that nothing has happened: nothing was sent, received, taken or locked. A call
//   that is served at the moment at which the context ends may succeed.
// - Plain threads may make these calls too, and so may goroutines of another run() than the one in
//   which the context was made. When the run() of a deadline has ended, its timer is gone. Then the
//   waiters notice the deadline, and so does a caller of done() or of a function that makes a
//   context from this one: they cancel the context and run the callbacks of its stop tokens. A
//   plain thread, or a goroutine with a ThreadLock, always watches the deadline of its own wait.
//   Who waits in recv() or select() for the channel of done() is such a waiter too. In a later
//   run(), stop_token() and after_func() get the context a timer of that run(). err() never
//   cancels.
//
// Contexts form a tree: cancelling one cancels all that were made from it, but not its parent. A
// handle: copies name the same context, and every function may be called from any goroutine or
// thread. A context lives as long as a handle to it, or to one made from it: keep one while
// somebody waits for done().
class MAGPIE_API Context {
 public:
  // The root: it is never cancelled and has no deadline and no values.
  static Context background();

  // Makes a context that cancel() ends, or the end of this one. Throws std::bad_alloc.
  Context with_cancel() const;

  // Makes a context that also ends when its time has come; an earlier deadline of this one still
  // counts. The time of another clock is converted now. Throws std::logic_error if no runtime runs,
  // std::bad_alloc.
  template <class Rep, class Period>
  Context with_timeout(std::chrono::duration<Rep, Period> duration) const {
    return with_deadline_ns(detail::deadline_after(duration));
  }
  template <class Clock, class Duration>
  Context with_deadline(std::chrono::time_point<Clock, Duration> time) const {
    return with_deadline_ns(detail::deadline_at(time));
  }

  // Makes a context that also ends, with errc::operation_canceled, when the token is asked to stop:
  // at once if it has been. So a goroutine waits with a std::stop_token by any call that takes a
  // context. The caller of request_stop() runs cancel() meanwhile; a goroutine stays on its thread
  // for that, as in cancel(). Throws std::bad_alloc.
  Context with_stop_token(std::stop_token token) const;

  // Makes a context with a value for value<V>(key). A key may be of any type with ==. Text, as key
  // or value, is kept as std::string: also a std::string_view, a literal or a char*. Throws
  // std::bad_alloc.
  template <detail::ContextKey K, class V>
  Context with_value(K&& key, V&& value) const {
    using Kept = detail::KeyedValue<detail::KeptAs<K>, detail::KeptAs<V>>;
    return with_kept(std::make_unique<Kept>(std::forward<K>(key), std::forward<V>(value)));
  }

  // A copy of the value under an equal key of the same type, of this context or the nearest one
  // above it. Nullopt: there is none, or it is not of type V, even if one further up is. Text may
  // be asked for as std::string_view too, which is valid while the context lives.
  template <class V, class K>
  std::optional<V> value(const K& key) const {
    using Key = detail::KeptAs<K>;
    if constexpr (!std::same_as<Key, K>) {
      return value<V>(Key(key));
    } else {
      using Kept = std::conditional_t<std::same_as<V, std::string_view>, std::string, V>;
      const void* found = find_value(typeid(Key), std::addressof(key), typeid(Kept));
      if (found == nullptr) return std::nullopt;
      return std::optional<V>(*static_cast<const Kept*>(found));
    }
  }

  // A channel that closes when the context ends, for select() and recv(). The nil channel for the
  // root. Throws std::bad_alloc.
  Chan<void> done() const;

  // None while the context lives; then std::errc::timed_out or std::errc::operation_canceled. Never
  // blocks.
  std::error_code err() const noexcept;
  bool cancelled() const noexcept { return static_cast<bool>(err()); }

  // Ends the context and all that were made from it. When it returns, they are over, no matter
  // which call cancelled them first, and their done() channels are closed. Then it runs the
  // callbacks of their stop tokens, for the contexts that this call was the first to cancel;
  // meanwhile the goroutine stays on its thread (ThreadLock). Blocks only for these callbacks and
  // for another cancel() that is still on its way down. A goroutine that it wakes may destroy the
  // handle that it was called on. Throws std::logic_error for the root.
  void cancel() const { cancel(std::exception_ptr()); }

  // As cancel(), and says why: cause() returns it for all contexts that this call is the first to
  // cancel. Null: as cancel().
  void cancel(std::exception_ptr cause) const;
  template <std::derived_from<std::exception> E>
  void cancel(E cause) const {
    cancel(std::make_exception_ptr(std::move(cause)));
  }

  // Why the context is over: what cancel(cause) was given, or a std::system_error with err(). Null
  // while the context lives. Never blocks for long. Throws std::bad_alloc.
  std::exception_ptr cause() const;

  // Calls f once, in a goroutine of its own, when the context ends: at once if it is over. If no
  // goroutine can be started, since no runtime runs or memory is short, cancel() calls f itself;
  // then f must not throw. It is not called if the AfterFunc is stopped or destroyed before that. f
  // may be move-only. Never blocks. Throws std::invalid_argument if f is an empty std::function or
  // a null pointer, std::bad_alloc.
  template <detail::Callable F>
  [[nodiscard]] AfterFunc after_func(F&& f) const {
    detail::check_not_empty(f);
    return call_after(detail::SharedFunction<void()>(std::forward<F>(f)));
  }

  // The time at which the context ends at the latest. Nullopt: it has no deadline.
  std::optional<TimePoint> deadline() const noexcept;

  // A stop token that is asked to stop when the context ends: for code that knows nothing of
  // Magpie. Throws std::bad_alloc.
  //
  // For stop sources of your own: the standard library identifies the caller of a callback by its
  // thread. If a callback may wait in Magpie (for a lock, a channel, a sleep), hold a ThreadLock
  // around request_stop(). Else another goroutine may destroy the callback while it runs.
  std::stop_token stop_token() const;

 private:
  friend sched::CancelSource* detail::source_of(const Context& context) noexcept;
  friend std::error_code detail::end_of(const Context& context);
  friend std::int64_t detail::time_to_watch(const Context& context) noexcept;

  explicit Context(std::shared_ptr<detail::ContextNode> node) : node_(std::move(node)) {}

  AfterFunc call_after(detail::SharedFunction<void()> f) const;
  Context with_deadline_ns(detail::DeadlineNs deadline) const;
  Context with_kept(std::unique_ptr<detail::ContextValue> value) const;
  const void* find_value(const std::type_info& key_type, const void* key,
                         const std::type_info& value_type) const;

  std::shared_ptr<detail::ContextNode> node_;  // null: the root
};

}  // namespace magpie
