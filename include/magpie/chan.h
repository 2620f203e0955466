// chan.h: typed channels, with Go's meaning. Plain threads may use them too; a plain thread that
// waits blocks.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/detail/chan_core.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/element.h>
#include <magpie/detail/with_context.h>
#include <magpie/plain_move.h>

namespace magpie {

// Thrown by a send on a closed channel, by a second close(), and by a select() that finds a channel
// closed whose handler takes a value only.
class MAGPIE_API ClosedChannel : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A handle to a channel. Copies of the handle name the same channel, and operations are const. A
// channel lives as long as a handle does; values that are still inside are destroyed with it. A
// handle that was moved from is the nil channel.
//
// Waiters are served in the order in which they came. A send happens before the receive that gets
// its value; close() happens before a receive that returns because of it.
//
// T may be move-only. Its constructors and its destructor may do anything: the channel runs them in
// the caller, before and after it touches the channel. A T that does not move plainly (plain_move.h
// says how to declare that yours does), or is larger than 512 bytes, travels on the heap. In that
// case a send may throw what the move or operator new throws; then nothing was sent. A receive may
// throw what the move throws; then the value is lost. The partner never notices.
template <class T>
class Chan {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>,
                "a channel carries objects: no references, constants or arrays");

 public:
  class Iterator;

  // Makes an unbuffered channel, or one with room for `capacity` values. Throws std::length_error
  // if the buffer would exceed the address space, std::bad_alloc if memory is short.
  explicit Chan(std::size_t capacity = 0)
      : core_(detail::make_channel(detail::Element<T>::kKind, capacity)) {
    // Not in the class: a struct may have a channel of itself as a member.
    static_assert(std::is_move_constructible_v<T>, "what a channel carries is moved");
  }

  // The nil channel: send() and recv() block for ever, try_ operations refuse, select() never
  // chooses it.
  static Chan nil() noexcept { return Chan(detail::NilTag()); }

  Chan(const Chan& other) noexcept : core_(other.core_) { detail::share(core_); }
  Chan(Chan&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Chan& operator=(Chan other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~Chan() { detail::drop(core_); }

  // Blocks until a receiver takes the value or the buffer has room. Throws ClosedChannel if the
  // channel is closed, before or meanwhile.
  void send(T value) const {
    detail::Outgoing<T> out(value);
    if (detail::send(core_, out.address()) == detail::ChanResult::closed)
      detail::throw_sent_on_closed();
    out.let_go();
  }

  // Blocks until there is a value. Nullopt: the channel is closed and drained.
  std::optional<T> recv() const {
    detail::Incoming<T> in;
    return in.take(detail::receive(core_, in.address()));
  }

  // As send() and recv(), until the context is over (context.h): then they throw std::system_error;
  // with `error`, send() returns false and recv() nullopt. A value that was not sent, also because
  // the channel is closed, stays where it was, even if it was given as an rvalue. A recv() that
  // returns nullopt without an error found the channel closed. (For a T that travels on the heap
  // see try_send.)
  void send(const Context& context, T&& value) const {
    std::error_code error;
    if (!send(context, std::move(value), error)) detail::throw_over(error, "Chan::send");
  }
  void send(const Context& context, const T& value) const requires std::is_copy_constructible_v<T> {
    send(context, T(value));
  }
  bool send(const Context& context, T&& value, std::error_code& error) const {
    return detail::wait_with(context, error, [&](sched::CancelSource* source) {
      return send_within({.source = source}, value);
    });
  }
  bool send(const Context& context, const T& value,
            std::error_code& error) const requires std::is_copy_constructible_v<T> {
    return send(context, T(value), error);
  }
  std::optional<T> recv(const Context& context) const {
    std::error_code error;
    std::optional<T> value = recv(context, error);
    if (error) detail::throw_over(error, "Chan::recv");
    return value;
  }
  std::optional<T> recv(const Context& context, std::error_code& error) const {
    detail::Incoming<T> in;
    detail::ChanResult result = detail::ChanResult::refused;
    detail::wait_with(context, error, [&](sched::CancelSource* source) {
      result = detail::receive(core_, in.address(), {.source = source});
      return result != detail::ChanResult::refused;
    });
    return in.take(result);
  }

  // Sends the value if that is possible without waiting, and moves from it. False: the value is
  // untouched. Throws ClosedChannel. Never blocks; takes no lock to refuse. (A T that travels on
  // the heap may be moved there and back. If its move may throw, it is copied if possible.)
  bool try_send(T& value) const {
    if (detail::refuses_send(core_)) return false;
    detail::Outgoing<T> out(value);
    switch (detail::try_send(core_, out.address())) {
      case detail::ChanResult::done:
        out.let_go();
        return true;
      case detail::ChanResult::refused:
        out.give_back(value);
        return false;
      case detail::ChanResult::closed:
        out.give_back(value);
        break;
    }
    detail::throw_sent_on_closed();
  }
  bool try_send(T&& value) const { return try_send(value); }

  // As try_send(), but blocks until a receiver takes the value, the buffer has room, or time is up.
  // Any clock will do.
  template <class Rep, class Period>
  bool try_send_for(std::chrono::duration<Rep, Period> duration, T& value) const {
    return send_within({.deadline = detail::deadline_after(duration)}, value);
  }
  template <class Rep, class Period>
  bool try_send_for(std::chrono::duration<Rep, Period> duration, T&& value) const {
    return try_send_for(duration, value);
  }
  template <class Clock, class Duration>
  bool try_send_until(std::chrono::time_point<Clock, Duration> time, T& value) const {
    return detail::wait_until(time, [&](detail::DeadlineNs deadline) {
      return send_within({.deadline = deadline}, value);
    });
  }
  template <class Clock, class Duration>
  bool try_send_until(std::chrono::time_point<Clock, Duration> time, T&& value) const {
    return try_send_until(time, value);
  }

  // Receives a value if there is one. Nullopt: there is none now, or the channel is closed and
  // drained; ask closed() before to tell the two apart. Never blocks.
  std::optional<T> try_recv() const {
    detail::Incoming<T> in;
    return in.take(detail::try_receive(core_, in.address()));
  }

  // As try_recv(), but blocks until there is a value, the channel is closed, or time is up.
  template <class Rep, class Period>
  std::optional<T> try_recv_for(std::chrono::duration<Rep, Period> duration) const {
    detail::Incoming<T> in;
    return in.take(
        detail::receive(core_, in.address(), {.deadline = detail::deadline_after(duration)}));
  }
  template <class Clock, class Duration>
  std::optional<T> try_recv_until(std::chrono::time_point<Clock, Duration> time) const {
    detail::Incoming<T> in;
    detail::ChanResult result = detail::ChanResult::refused;
    detail::wait_until(time, [&](detail::DeadlineNs deadline) {
      result = detail::receive(core_, in.address(), {.deadline = deadline});
      return result != detail::ChanResult::refused;
    });
    return in.take(result);
  }

  // Ends the channel: receivers get what is in the buffer and then nullopt, senders throw. Wakes
  // all waiters. Never blocks. Throws ClosedChannel the second time, std::logic_error for the nil
  // channel.
  void close() const { detail::close(core_); }

  // A snapshot: how many values are in the buffer, how many fit, and whether the channel is closed.
  // Never block, take no lock.
  std::size_t size() const noexcept { return detail::size(core_); }
  std::size_t capacity() const noexcept { return detail::capacity(core_); }
  bool closed() const noexcept { return detail::is_closed(core_); }

  // for (auto& value : channel): receives until the channel is closed and drained.
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

  // True if both name the same channel.
  friend bool operator==(const Chan& a, const Chan& b) noexcept { return a.core_ == b.core_; }

 private:
  friend struct detail::ChanAccess;
  explicit Chan(detail::NilTag) noexcept : core_(nullptr) {}

  // False: the limit was reached. Unless it returns true, the value is what it was.
  bool send_within(const detail::WaitLimit& limit, T& value) const {
    detail::Outgoing<T> out(value);
    detail::ChanResult result = detail::send(core_, out.address(), limit);
    if (result == detail::ChanResult::done) {
      out.let_go();
      return true;
    }
    out.give_back(value);
    if (result == detail::ChanResult::closed) detail::throw_sent_on_closed();
    return false;
  }

  detail::ChanCore* core_;
};

// Receives a value with each step. The handle must outlive it.
template <class T>
class Chan<T>::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(const Chan& channel) : channel_(&channel), value_(channel.recv()) {}

  T& operator*() const { return *value_; }
  T* operator->() const { return std::addressof(*value_); }
  Iterator& operator++() {
    value_.reset();
    if (std::optional<T> next = channel_->recv()) value_.emplace(*std::move(next));
    return *this;
  }
  void operator++(int) { ++*this; }

  friend bool operator==(const Iterator& at, std::default_sentinel_t) { return !at.value_; }

 private:
  const Chan* channel_;
  mutable std::optional<T> value_;
};

// A channel of signals without a value. As Chan<T>, but recv() returns a bool.
template <>
class Chan<void> {
 public:
  explicit Chan(std::size_t capacity = 0)
      : core_(detail::make_channel(detail::Element<void>::kKind, capacity)) {}
  static Chan nil() noexcept { return Chan(detail::NilTag()); }

  Chan(const Chan& other) noexcept : core_(other.core_) { detail::share(core_); }
  Chan(Chan&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Chan& operator=(Chan other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~Chan() { detail::drop(core_); }

  // As Chan<T>::send().
  void send() const {
    if (detail::send(core_, nullptr) == detail::ChanResult::closed) detail::throw_sent_on_closed();
  }
  // As Chan<T>::recv(). False: the channel is closed and drained.
  bool recv() const { return detail::receive(core_, nullptr) == detail::ChanResult::done; }

  // As in Chan<T>.
  void send(const Context& context) const {
    std::error_code error;
    if (!send(context, error)) detail::throw_over(error, "Chan::send");
  }
  bool send(const Context& context, std::error_code& error) const {
    return detail::wait_with(context, error, [&](sched::CancelSource* source) {
      return send_within({.source = source});
    });
  }
  bool recv(const Context& context) const {
    std::error_code error;
    bool received = recv(context, error);
    if (error) detail::throw_over(error, "Chan::recv");
    return received;
  }
  bool recv(const Context& context, std::error_code& error) const {
    detail::ChanResult result = detail::ChanResult::refused;
    detail::wait_with(context, error, [&](sched::CancelSource* source) {
      result = detail::receive(core_, nullptr, {.source = source});
      return result != detail::ChanResult::refused;
    });
    return result == detail::ChanResult::done;
  }

  bool try_send() const {
    detail::ChanResult result = detail::try_send(core_, nullptr);
    if (result == detail::ChanResult::closed) detail::throw_sent_on_closed();
    return result == detail::ChanResult::done;
  }
  template <class Rep, class Period>
  bool try_send_for(std::chrono::duration<Rep, Period> duration) const {
    return send_within({.deadline = detail::deadline_after(duration)});
  }
  template <class Clock, class Duration>
  bool try_send_until(std::chrono::time_point<Clock, Duration> time) const {
    return detail::wait_until(
        time, [&](detail::DeadlineNs deadline) { return send_within({.deadline = deadline}); });
  }
  // False: there is nothing to receive now, or the channel is closed and drained.
  bool try_recv() const { return detail::try_receive(core_, nullptr) == detail::ChanResult::done; }
  template <class Rep, class Period>
  bool try_recv_for(std::chrono::duration<Rep, Period> duration) const {
    return receive_within({.deadline = detail::deadline_after(duration)}) ==
           detail::ChanResult::done;
  }
  template <class Clock, class Duration>
  bool try_recv_until(std::chrono::time_point<Clock, Duration> time) const {
    detail::ChanResult result = detail::ChanResult::refused;
    detail::wait_until(time, [&](detail::DeadlineNs deadline) {
      result = receive_within({.deadline = deadline});
      return result != detail::ChanResult::refused;
    });
    return result == detail::ChanResult::done;
  }

  void close() const { detail::close(core_); }
  std::size_t size() const noexcept { return detail::size(core_); }
  std::size_t capacity() const noexcept { return detail::capacity(core_); }
  bool closed() const noexcept { return detail::is_closed(core_); }

  friend bool operator==(const Chan& a, const Chan& b) noexcept { return a.core_ == b.core_; }

 private:
  friend struct detail::ChanAccess;
  explicit Chan(detail::NilTag) noexcept : core_(nullptr) {}

  // False: the limit was reached.
  bool send_within(const detail::WaitLimit& limit) const {
    detail::ChanResult result = detail::send(core_, nullptr, limit);
    if (result == detail::ChanResult::closed) detail::throw_sent_on_closed();
    return result == detail::ChanResult::done;
  }
  detail::ChanResult receive_within(const detail::WaitLimit& limit) const {
    return detail::receive(core_, nullptr, limit);
  }

  detail::ChanCore* core_;
};

// A handle that is moved from passes its reference on. It becomes the nil channel, which owns
// nothing.
template <class T>
inline constexpr bool moves_plainly<Chan<T>> = true;

}  // namespace magpie
