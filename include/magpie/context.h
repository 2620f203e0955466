// context.h: tells everybody who works on the same thing that it is over: cancelled, or too late.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <magpie/chan.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/with_context.h>
#include <magpie/time.h>

namespace magpie {

namespace detail {

struct ContextNode;  // src/flow/context.cc

// A key and what it stands for.
struct ContextValue {
  virtual ~ContextValue() = default;
  virtual bool has_key(const std::type_info& key_type, const void* key) const = 0;
  // Null: it is of another type.
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
    return value_type == typeid(Value) ? &value : nullptr;
  }
  Key key;
  Value value;
};

// Text in any form is kept as a string.
template <class T>
using KeptAs = std::conditional_t<std::is_convertible_v<const std::decay_t<T>&, std::string>,
                                  std::string, std::decay_t<T>>;

template <class K>
concept ContextKey = std::equality_comparable<KeptAs<K>>;

}  // namespace detail

// Every call of the core that can block takes a context too: Chan::send and recv, lock, acquire,
// wait, join, sleep_for, submit. For all of them:
// - A context that is over fails the call before it is tried, also if it would not have to wait.
// - Cancelling ends the wait at once. The call then throws std::system_error with err() as its code
//   and the name of the call in its text; with a trailing std::error_code& it returns false, or
//   nothing, and tells it there.
// - An error means that nothing has happened: nothing was sent, received, taken or locked. A call
//   that is served at the moment at which the context ends may succeed.
// - They work from plain threads too, and in another run() than that in which the context was made.
//   A deadline whose run() has ended is noticed by those who wait, and by those who ask for done()
//   or make a context from it: they cancel the context, and run the callbacks of its stop tokens. So
//   may a plain thread, or a goroutine with a ThreadLock, that waits. err() only tells.
//
// A node in a tree of them: cancelling one cancels those that were made from it, not the one it was made from. A shared
// handle: copies name the same context; every function may be called from any thread, goroutine or not. A context is
// there as long as a handle to it, or to one made from it, is: keep it while somebody waits for done().
class Context {
 public:
  // The root: never cancelled, has no deadline and no values.
  static Context background();

  // A context of its own, to be cancelled by cancel(), or together with this one. Throws std::bad_alloc.
  Context with_cancel() const;

  // The same, and cancelled when the time has come; a deadline that this one has already still counts.
  // Throws std::logic_error when no runtime runs.
  template <class Rep, class Period>
  Context with_timeout(std::chrono::duration<Rep, Period> duration) const {
    return with_deadline_ns(detail::deadline_after(duration));
  }
  template <class Clock, class Duration>
  Context with_deadline(std::chrono::time_point<Clock, Duration> time) const {
    return with_deadline_ns(detail::deadline_at(time));
  }

  // The same with a value for value<V>(key). Keys of any type that can be compared; text is kept as std::string.
  template <detail::ContextKey K, class V>
  Context with_value(K&& key, V&& value) const {
    using Kept = detail::KeyedValue<detail::KeptAs<K>, detail::KeptAs<V>>;
    return with_kept(std::make_unique<Kept>(std::forward<K>(key), std::forward<V>(value)));
  }

  // A copy of the value that was given to this context, or the nearest one above it, under an equal key of the same
  // type; nullopt: there is none, or it is not of type V, even if one further up is.
  template <class V, class K>
  std::optional<V> value(const K& key) const {
    using Key = detail::KeptAs<K>;
    const Key& kept_key = key;
    const void* found = find_value(typeid(Key), &kept_key, typeid(V));
    if (found == nullptr) return std::nullopt;
    return *static_cast<const V*>(found);
  }

  // Closes when the context is cancelled, for select and to wait for; the nil channel for the root. Throws std::bad_alloc.
  Chan<void> done() const;

  // None while it is alive; then std::errc::timed_out, or std::errc::operation_canceled. Never blocks.
  std::error_code err() const noexcept;
  bool cancelled() const noexcept { return static_cast<bool>(err()); }

  // Cancels it and all that were made from it: when it returns they are over, whoever cancelled them first, and their
  // done() are closed. Then runs the callbacks of their stop tokens here, those of contexts that it was the first to
  // cancel; the goroutine stays on its thread meanwhile (ThreadLock). Waits for nothing but these callbacks, and for
  // another cancel() that is on its way down. Throws std::logic_error for the root.
  void cancel() const;

  // When it will be cancelled at the latest.
  std::optional<TimePoint> deadline() const noexcept;

  // Asked to stop when the context is cancelled: for code that knows nothing of Magpie. Throws std::bad_alloc.
  // For stop sources of your own: the standard library knows by its thread who runs a callback. If a callback may wait in
  // Magpie (for a lock, a channel, a sleep), hold a ThreadLock around request_stop(); else another goroutine may
  // destroy the callback while it runs.
  std::stop_token stop_token() const;

 private:
  friend sched::CancelSource* detail::source_of(const Context& context) noexcept;
  friend std::error_code detail::end_of(const Context& context);
  friend std::int64_t detail::time_to_watch(const Context& context) noexcept;

  explicit Context(std::shared_ptr<detail::ContextNode> node) : node_(std::move(node)) {}

  Context with_deadline_ns(detail::DeadlineNs deadline) const;
  Context with_kept(std::unique_ptr<detail::ContextValue> value) const;
  const void* find_value(const std::type_info& key_type, const void* key,
                         const std::type_info& value_type) const;

  std::shared_ptr<detail::ContextNode> node_;  // null: the root
};

}  // namespace magpie
