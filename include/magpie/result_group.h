// result_group.h: a TaskGroup whose goroutines have results.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <magpie/context.h>
#include <magpie/detail/callable.h>
#include <magpie/mutex.h>
#include <magpie/task_group.h>

namespace magpie {

// As TaskGroup, and wait() returns what the functions returned:
//
//   magpie::ResultGroup<Page> pages;
//   for (const Url& url : urls) pages.go([&](const Context& all) { return get(url, all); });
//   for (Page& page : pages.wait()) ...
//
// Everything that is said of TaskGroup holds: the first exception cancels the others, and wait()
// throws it. Then the results are gone.
template <std::movable T>
class ResultGroup {
 public:
  // Throws std::bad_alloc.
  explicit ResultGroup(const Context& parent = Context::background()) : group_(parent) {}

  // Starts f(), or f(context), in a goroutine. Its result is kept for wait(). Blocks while as many
  // run as set_limit() allows. Throws as magpie::go.
  template <detail::GroupTask F>
  void go(F&& f) {
    group_.go(keeping(std::forward<F>(f)));
  }

  // As TaskGroup's. False: f is not called.
  template <detail::GroupTask F>
  bool try_go(F&& f) {
    return group_.try_go(keeping(std::forward<F>(f)));
  }
  template <class Rep, class Period, detail::GroupTask F>
  bool try_go_for(std::chrono::duration<Rep, Period> duration, F&& f) {
    return group_.try_go_for(duration, keeping(std::forward<F>(f)));
  }
  template <class Clock, class Duration, detail::GroupTask F>
  bool try_go_until(std::chrono::time_point<Clock, Duration> time, F&& f) {
    return group_.try_go_until(time, keeping(std::forward<F>(f)));
  }

  // As TaskGroup::go with a context: it limits only the waiting.
  template <detail::GroupTask F>
  void go(const Context& context, F&& f) {
    group_.go(context, keeping(std::forward<F>(f)));
  }
  template <detail::GroupTask F>
  bool go(const Context& context, F&& f, std::error_code& error) {
    return group_.go(context, keeping(std::forward<F>(f)), error);
  }

  // Blocks until all goroutines of the group have ended. Returns their results, in the order in
  // which go() was called for them, and forgets them: the group may be used again. Else as
  // TaskGroup::wait().
  std::vector<T> wait() {
    return *wait_by([&] {
      group_.wait();
      return true;
    });
  }

  // As wait(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns nullopt. The goroutines go on, and the group has yet to be waited for.
  std::vector<T> wait(const Context& context) {
    std::error_code error;
    std::optional<std::vector<T>> results = wait(context, error);
    if (error) detail::throw_over(error, "ResultGroup::wait");
    return *std::move(results);
  }
  std::optional<std::vector<T>> wait(const Context& context, std::error_code& error) {
    return wait_by([&] { return group_.wait(context, error); });
  }

  // As wait(), until time is up. Nullopt: the group has yet to be waited for.
  template <class Rep, class Period>
  [[nodiscard]] std::optional<std::vector<T>> wait_for(
      std::chrono::duration<Rep, Period> duration) {
    return wait_by([&] { return group_.wait_for(duration); });
  }
  template <class Clock, class Duration>
  [[nodiscard]] std::optional<std::vector<T>> wait_until(
      std::chrono::time_point<Clock, Duration> time) {
    return wait_by([&] { return group_.wait_until(time); });
  }

  void set_limit(std::int64_t n) { group_.set_limit(n); }  // as TaskGroup's
  Context context() const { return group_.context(); }     // as TaskGroup's

 private:
  using Place = std::optional<T>;

  // A deque: places stay where they are while others come. A goroutine fills its own without the
  // lock; wait() looks when all have ended. The place of a function that was not called stays
  // empty.
  Place& next_place() {
    std::lock_guard hold(mutex_);
    return places_.emplace_back();
  }

  template <class F>
  auto keeping(F&& f) {
    using Kept = std::decay_t<F>;
    detail::check_not_empty(f);
    // Here, so that the order is that of the calls of go().
    return [&place = next_place(), f = Kept(std::forward<F>(f))](const Context& context) mutable {
      if constexpr (std::is_invocable_v<Kept, Context>) {
        place.emplace(std::move(f)(context));
      } else {
        (void)context;
        place.emplace(std::move(f)());
      }
    };
  }

  // wait() returns false if its limit was reached.
  template <class Wait>
  std::optional<std::vector<T>> wait_by(Wait wait) {
    std::deque<Place> places;
    try {
      if (!wait()) return std::nullopt;
    } catch (...) {
      take_places(places);
      throw;
    }
    take_places(places);
    std::vector<T> results;
    results.reserve(places.size());
    for (Place& place : places)
      if (place) results.push_back(*std::move(place));
    return results;
  }

  // Moving and destroying results is user code: the caller does it without the lock.
  void take_places(std::deque<Place>& places) noexcept {
    std::lock_guard hold(mutex_);
    places.swap(places_);
  }

  Mutex mutex_;
  // guarded by mutex_
  std::deque<Place> places_;

  TaskGroup group_;  // the last: it ends its goroutines before their places go
};

}  // namespace magpie
