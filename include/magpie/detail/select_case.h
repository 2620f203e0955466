// select_case.h: the cases of a select, with their values and handlers. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <magpie/chan.h>
#include <magpie/context.h>
#include <magpie/detail/element.h>
#include <magpie/detail/select_core.h>

namespace magpie::detail {

struct NoHandler {
  void operator()() const noexcept {}
};

// What a Chan<T> can send.
template <class V, class T>
concept SendableAs = !std::is_void_v<T> && std::is_constructible_v<T, V&&>;

// The cases of one select that name no channel.
struct OtherCases {
  bool has_otherwise = false;
  bool has_timeout = false;
  std::size_t otherwise = 0;  // their indices
  std::size_t timeout = 0;
  std::int64_t timeout_ns = kNoDeadline;

  void add_otherwise(std::size_t index) {
    has_otherwise = true;
    otherwise = index;
  }
  void add_timeout(std::size_t index, std::int64_t ns) {
    if (has_timeout && ns >= timeout_ns) return;
    has_timeout = true;
    timeout = index;
    timeout_ns = ns;
  }

  Select request(SelectCase* cases, SelectCase** in_lock_order, std::size_t count) const {
    using If = Select::IfNoneIsReady;
    return Select{cases, in_lock_order, count, timeout_ns,
                  has_otherwise ? If::return_at_once : If::wait};
  }

  std::size_t index_of(Choice choice) const {
    switch (choice.chosen) {
      case Chosen::a_case:
        break;
      case Chosen::time_is_up:
        return timeout;
      case Chosen::none_is_ready:
        return otherwise;
    }
    return choice.index;
  }
};

struct ChannelCase {
  static constexpr int kIsOtherwise = 0;
};

// The only parameter of a function object, without const and reference. Of an overloaded or generic
// one it is not known: void.
template <class F>
struct OnlyParameter {
  using Type = void;
};
template <class R, class A>
struct OnlyParameter<R (*)(A)> {
  using Type = std::remove_cvref_t<A>;
};
template <class R, class A>
struct OnlyParameter<R (*)(A) noexcept> : OnlyParameter<R (*)(A)> {};
template <class R, class C, class A>
struct OnlyParameter<R (C::*)(A)> : OnlyParameter<R (*)(A)> {};
template <class R, class C, class A>
struct OnlyParameter<R (C::*)(A) const> : OnlyParameter<R (*)(A)> {};
template <class R, class C, class A>
struct OnlyParameter<R (C::*)(A) noexcept> : OnlyParameter<R (*)(A)> {};
template <class R, class C, class A>
struct OnlyParameter<R (C::*)(A) const noexcept> : OnlyParameter<R (*)(A)> {};
template <class F>
requires requires { &F::operator(); }
struct OnlyParameter<F> : OnlyParameter<decltype(&F::operator())> {};

// A T that can be made of an optional, such as std::any, must not swallow the optional itself.
template <class F, class T>
inline constexpr bool kTakesOptional = std::is_invocable_v<F&, std::optional<T>> &&
                                       !std::is_same_v<typename OnlyParameter<F>::Type, T>;

// Calls f with what was received, or without. Returns what f returns.
template <class F, class T>
decltype(auto) hand_over(F& f, std::optional<T> received) {
  if constexpr (kTakesOptional<F, T>) {
    return f(std::move(received));
  } else if constexpr (std::is_invocable_v<F&, T>) {
    if (!received) throw_received_from_closed();
    return f(*std::move(received));
  } else {
    static_assert(
        std::is_invocable_v<F&>,
        "the handler of on_recv takes std::optional<T>, T (Chan<void>: bool), or nothing");
    return f();
  }
}
template <class F>
decltype(auto) hand_over(F& f, bool received) {
  if constexpr (std::is_invocable_v<F&, bool>) {
    return f(received);
  } else {
    static_assert(std::is_invocable_v<F&>,
                  "the handler of on_recv for a Chan<void> takes bool, or nothing");
    return f();
  }
}

template <class T, class F>
class ReceiveCase : public ChannelCase {
 public:
  ReceiveCase(const Chan<T>& channel, F f)
      : channel_(ChanAccess::core(channel)), handler_(std::move(f)) {}

  void enter(SelectCase& entry, OtherCases&, std::size_t& index) {
    entry.channel = channel_;
    entry.slot = slot_.address();
    entry.direction = Direction::receive;
    ++index;
  }
  decltype(auto) finish(ChanResult result) { return hand_over(handler_, slot_.take(result)); }

 private:
  ChanCore* channel_;
  [[no_unique_address]] F handler_;
  Incoming<T> slot_;
};

template <class F>
class ReceiveCase<void, F> : public ChannelCase {
 public:
  ReceiveCase(const Chan<void>& channel, F f)
      : channel_(ChanAccess::core(channel)), handler_(std::move(f)) {}

  void enter(SelectCase& entry, OtherCases&, std::size_t& index) {
    entry.channel = channel_;
    entry.direction = Direction::receive;
    ++index;
  }
  decltype(auto) finish(ChanResult result) {
    return hand_over(handler_, result == ChanResult::done);
  }

 private:
  ChanCore* channel_;
  [[no_unique_address]] F handler_;
};

template <class T, class F>
class SendCase : public ChannelCase {
 public:
  template <class V>
  SendCase(const Chan<T>& channel, V&& value, F f)
      : channel_(ChanAccess::core(channel)),
        value_(std::forward<V>(value)),
        handler_(std::move(f)) {}

  void enter(SelectCase& entry, OtherCases&, std::size_t& index) {
    out_.emplace(value_);
    entry.channel = channel_;
    entry.slot = out_->address();
    entry.direction = Direction::send;
    ++index;
  }
  decltype(auto) finish(ChanResult result) {
    if (result == ChanResult::closed) throw_sent_on_closed();
    out_->let_go();
    return handler_();
  }

 private:
  ChanCore* channel_;
  T value_;
  std::optional<Outgoing<T>> out_;
  [[no_unique_address]] F handler_;
};

template <class F>
class SendCase<void, F> : public ChannelCase {
 public:
  SendCase(const Chan<void>& channel, F f)
      : channel_(ChanAccess::core(channel)), handler_(std::move(f)) {}

  void enter(SelectCase& entry, OtherCases&, std::size_t& index) {
    entry.channel = channel_;
    entry.direction = Direction::send;
    ++index;
  }
  decltype(auto) finish(ChanResult result) {
    if (result == ChanResult::closed) throw_sent_on_closed();
    return handler_();
  }

 private:
  ChanCore* channel_;
  [[no_unique_address]] F handler_;
};

// Keeps the channel, since done() made its handle for this case alone. Keeps the context too: if
// nobody else watches its deadline, the case does, as a timeout that cancels it.
template <class F>
class DoneCase : public ChannelCase {
 public:
  DoneCase(Context context, F f)
      : context_(std::move(context)), done_(context_.done()), handler_(std::move(f)) {}

  void enter(SelectCase& entry, OtherCases& others, std::size_t& index) {
    (void)end_of(context_);
    entry.channel = ChanAccess::core(done_);
    entry.direction = Direction::receive;
    std::int64_t ns = time_to_watch(context_);
    if (ns != kNoDeadline) others.add_timeout(index, ns);
    ++index;
  }
  decltype(auto) finish(ChanResult) {
    (void)end_of(context_);
    return handler_();
  }

 private:
  Context context_;
  Chan<void> done_;
  [[no_unique_address]] F handler_;
};

template <class F>
class TimeoutCase : public ChannelCase {
 public:
  TimeoutCase(std::int64_t ns, F f) : ns_(ns), handler_(std::move(f)) {}

  void enter(SelectCase&, OtherCases& others, std::size_t& index) {
    others.add_timeout(index++, ns_);
  }
  decltype(auto) finish(ChanResult) { return handler_(); }

 private:
  std::int64_t ns_;
  [[no_unique_address]] F handler_;
};

template <class F>
class DeadlineCase : public ChannelCase {
 public:
  DeadlineCase(DeadlineNs deadline, F f) : deadline_(deadline), handler_(std::move(f)) {}

  void enter(SelectCase&, OtherCases& others, std::size_t& index) {
    others.add_timeout(index++, time_left());
  }
  decltype(auto) finish(ChanResult) { return handler_(); }

 private:
  std::int64_t time_left() const {
    if (deadline_ == kNoDeadline) return kNoDeadline;
    std::int64_t left = deadline_ - steady_now_ns();
    return left > 0 ? left : 0;
  }

  DeadlineNs deadline_;
  [[no_unique_address]] F handler_;
};

template <class F>
class OtherwiseCase {
 public:
  static constexpr int kIsOtherwise = 1;
  explicit OtherwiseCase(F f) : handler_(std::move(f)) {}

  void enter(SelectCase&, OtherCases& others, std::size_t& index) { others.add_otherwise(index++); }
  decltype(auto) finish(ChanResult) { return handler_(); }

 private:
  [[no_unique_address]] F handler_;
};

// Each case has finish(), which calls the handler and returns what that returns.
template <class Case>
concept IsCase = requires(std::remove_cvref_t<Case>& one, SelectCase& entry, OtherCases& others,
                          std::size_t& index, ChanResult result) {
  one.enter(entry, others, index);
  one.finish(result);
};

// What the handler of a case returns.
template <class Case>
using HandlerResult =
    decltype(std::declval<std::remove_cvref_t<Case>&>().finish(std::declval<ChanResult>()));

}  // namespace magpie::detail
