// select.h: waits for the first of several channel operations. Plain threads may use it too; a
// plain thread that waits blocks.
//
//   magpie::select(
//       magpie::on_recv(results, [&](std::optional<int> v) { ... }),   // nullopt: closed
//       magpie::on_send(requests, 42, [&] { ... }),
//       magpie::on_timeout(1s, [&] { ... }));
//
// select_next() is for loops: a handler ends the loop by returning false.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <magpie/chan.h>
#include <magpie/context.h>
#include <magpie/defer.h>
#include <magpie/detail/api.h>
#include <magpie/detail/select_case.h>
#include <magpie/detail/select_core.h>
#include <magpie/detail/selector_case.h>
#include <magpie/go.h>

namespace magpie {

// The cases. A case may have no handler. select() calls the handler of the chosen case after the
// operation, without holding any lock; an exception from it leaves select(). A case refers to its
// channel, so make the case in the call of select().

// Receives. f takes std::optional<T>, which is nullopt if the channel is closed and drained, or T,
// or nothing. For Chan<void> f takes a bool, which is false then, or nothing. If f takes T and the
// channel is closed and drained when select() chooses the case, select() throws ClosedChannel.
template <class T, class F = detail::NoHandler>
auto on_recv(const Chan<T>& channel, F&& f = {}) {
  return detail::ReceiveCase<T, std::decay_t<F>>(channel, std::forward<F>(f));
}

// Sends the value. If select() chooses the case because the channel is closed, it throws
// ClosedChannel. If it does not choose the case, the value is destroyed with the case.
template <class T, detail::SendableAs<T> V, class F = detail::NoHandler>
auto on_send(const Chan<T>& channel, V&& value, F&& f = {}) {
  return detail::SendCase<T, std::decay_t<F>>(channel, std::forward<V>(value), std::forward<F>(f));
}
template <class F = detail::NoHandler>
auto on_send(const Chan<void>& channel, F&& f = {}) {
  return detail::SendCase<void, std::decay_t<F>>(channel, std::forward<F>(f));
}

// Is chosen when no other case could go on for that long; a duration of zero or less means at once.
// Of several timeouts the shortest counts.
template <class Rep, class Period, class F = detail::NoHandler>
auto on_timeout(std::chrono::duration<Rep, Period> duration, F&& f = {}) {
  return detail::TimeoutCase<std::decay_t<F>>(detail::whole_ns(duration), std::forward<F>(f));
}

// Is chosen when no other case could go on until that time; a past time means at once.
template <class Clock, class Duration, class F = detail::NoHandler>
auto on_deadline(std::chrono::time_point<Clock, Duration> time, F&& f = {}) {
  return detail::DeadlineCase<std::decay_t<F>>(detail::deadline_at(time), std::forward<F>(f));
}

// Is chosen when the context is over; err() says why. If another case can go on too, either may be
// chosen. Throws std::bad_alloc.
template <class F = detail::NoHandler>
auto on_done(const Context& context, F&& f = {}) {
  return detail::DoneCase<std::decay_t<F>>(context, std::forward<F>(f));
}

// Is chosen at once if no other case can go on, so that select() does not wait. At most one.
template <class F = detail::NoHandler>
auto otherwise(F&& f = {}) {
  return detail::OtherwiseCase<std::decay_t<F>>(std::forward<F>(f));
}

namespace detail {

// Does one of the cases, calls finish(case, result) for it and returns its index.
template <class Finish, class... Cases>
std::size_t select_and_finish(Finish finish, Cases&... cases) {
  constexpr std::size_t kCount = sizeof...(Cases);
  static_assert(kCount <= kMostCases, "select() takes 65,536 cases at most");
  static_assert((0 + ... + std::remove_cvref_t<Cases>::kIsOtherwise) <= 1,
                "select() takes one otherwise() at most");

  SelectCase table[kCount + 1];  // kCount may be 0
  SelectCase* in_lock_order[kCount + 1];
  OtherCases others;
  std::size_t index = 0;
  (cases.enter(table[index], others, index), ...);  // each advances index

  Choice choice = select(others.request(table, in_lock_order, kCount));
  std::size_t chosen = others.index_of(choice);
  index = 0;
  ((index++ == chosen ? finish(cases, table[chosen].result) : void()), ...);
  return chosen;
}

}  // namespace detail

// Blocks until one of the cases can go on, does it, calls its handler and returns its index. If
// several can go on, each is chosen with the same probability. The case of a nil channel never can.
// If no case ever can, select() blocks for ever. Throws ClosedChannel, what handlers throw, and,
// for values that travel on the heap, std::bad_alloc; else it allocates nothing. What handlers
// return is dropped.
template <detail::IsCase... Cases>
std::size_t select(Cases&&... cases) {
  return detail::select_and_finish(
      [](auto& one, detail::ChanResult result) { (void)one.finish(result); }, cases...);
}

// As select(), for loops: while (select_next(...)) {}. Handlers return a bool or nothing. Returns
// what the handler returned; true if that was nothing.
template <detail::IsCase... Cases>
[[nodiscard]] bool select_next(Cases&&... cases) {
  static_assert(((std::is_void_v<detail::HandlerResult<Cases>> ||
                  std::is_same_v<detail::HandlerResult<Cases>, bool>)&&...),
                "the handlers of select_next() return bool or nothing");
  bool goes_on = true;
  auto finish = [&goes_on](auto& one, detail::ChanResult result) {
    if constexpr (std::is_void_v<detail::HandlerResult<decltype(one)>>) {
      one.finish(result);
    } else {
      goes_on = one.finish(result);
    }
  };
  (void)detail::select_and_finish(finish, cases...);
  return goes_on;
}

namespace detail {
// Throws std::invalid_argument.
MAGPIE_API void check_not_nil(const Chan<void>& ended);
}  // namespace detail

// As spawn(f), and closes `ended` when f has returned or thrown: select() waits for a goroutine by
// on_recv(ended), and join() has its result then. Give each goroutine a channel of its own. If
// run() drops the goroutine, the channel stays open. Throws std::invalid_argument for the nil
// channel, and as spawn().
//
//   Chan<void> ended;
//   JoinHandle<int> answer = spawn_closing(ended, [] { return ask(); });
//   select(on_recv(ended, [&](bool) { use(answer.join()); }), on_timeout(1s, [] { give_up(); }));
template <class F>
requires std::invocable<std::decay_t<F>>
auto spawn_closing(const Chan<void>& ended, F&& f) {
  detail::check_not_nil(ended);
  detail::check_not_empty(f);
  return spawn([ended, call = std::decay_t<F>(std::forward<F>(f))]() mutable -> decltype(auto) {
    Defer close([&ended] { ended.close(); });
    return std::move(call)();
  });
}

// As select(), with a number of cases that is known at run time. One goroutine or thread may use it
// at a time, and may call select() again: receive cases receive again, send cases send another copy
// of their value, timeouts begin anew, deadlines stay. A value that cannot be copied is sent once;
// after that its case is like that of a nil channel. A handler must not clear() the Selector.
class MAGPIE_API Selector {
 public:
  Selector() = default;
  // A Selector that was moved from has no cases.
  Selector(Selector&& other) noexcept;
  Selector& operator=(Selector&& other) noexcept;

  // Each adds a case and returns its index. Handlers are as above. Throw std::length_error beyond
  // 65,536 cases, std::logic_error for a second otherwise().
  template <class T, class F = detail::NoHandler>
  std::size_t recv(const Chan<T>& channel, F&& f = {}) {
    return add(
        std::make_unique<detail::KeptReceive<T, std::decay_t<F>>>(channel, std::forward<F>(f)));
  }
  template <class T, detail::SendableAs<T> V, class F = detail::NoHandler>
  std::size_t send(const Chan<T>& channel, V&& value, F&& f = {}) {
    return add(std::make_unique<detail::KeptSend<T, std::decay_t<F>>>(
        channel, std::forward<V>(value), std::forward<F>(f)));
  }
  template <class F = detail::NoHandler>
  std::size_t send(const Chan<void>& channel, F&& f = {}) {
    return add(
        std::make_unique<detail::KeptSend<void, std::decay_t<F>>>(channel, std::forward<F>(f)));
  }
  template <class F = detail::NoHandler>
  std::size_t done(const Context& context, F&& f = {}) {
    return add(std::make_unique<detail::Kept<detail::DoneCase<std::decay_t<F>>>>(
        context, std::forward<F>(f)));
  }
  template <class Rep, class Period, class F = detail::NoHandler>
  std::size_t timeout(std::chrono::duration<Rep, Period> duration, F&& f = {}) {
    return add(std::make_unique<detail::Kept<detail::TimeoutCase<std::decay_t<F>>>>(
        detail::whole_ns(duration), std::forward<F>(f)));
  }
  template <class Clock, class Duration, class F = detail::NoHandler>
  std::size_t deadline(std::chrono::time_point<Clock, Duration> time, F&& f = {}) {
    return add(std::make_unique<detail::Kept<detail::DeadlineCase<std::decay_t<F>>>>(
        detail::deadline_at(time), std::forward<F>(f)));
  }
  template <class F = detail::NoHandler>
  std::size_t otherwise(F&& f = {}) {
    detail::check_only_otherwise(has_otherwise_);
    std::size_t index = add(
        std::make_unique<detail::Kept<detail::OtherwiseCase<std::decay_t<F>>>>(std::forward<F>(f)));
    has_otherwise_ = true;
    return index;
  }

  // As magpie::select() with these cases.
  std::size_t select();

  std::size_t size() const noexcept { return cases_.size(); }
  void clear() noexcept;

 private:
  std::size_t add(std::unique_ptr<detail::AnyCase> one);

  std::vector<std::unique_ptr<detail::AnyCase>> cases_;
  // Scratch memory of select(), one entry for each case.
  std::vector<detail::SelectCase> table_;
  std::vector<detail::SelectCase*> in_lock_order_;
  bool has_otherwise_ = false;
};

}  // namespace magpie
