// single_flight.h: does for all callers at once what several ask for at the same time.
#pragma once

#include <magpie/detail/cxx20.h>

#include <algorithm>
#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <magpie/chan.h>
#include <magpie/context.h>
#include <magpie/detail/caught.h>
#include <magpie/mutex.h>

namespace magpie {

// While one caller computes the value for a key, further callers with an equal key wait for that
// value. Nothing is kept after that: this is no cache. Any number of goroutines and threads may use
// it at once. If run() drops a goroutine inside f, callers with its key wait until their context
// ends: forget() the key, or use one SingleFlight in each run().
template <class Key, std::copy_constructible Value, class Hash = std::hash<Key>,
          class Equal = std::equal_to<Key>>
class SingleFlight {
 public:
  SingleFlight() = default;
  SingleFlight(const SingleFlight&) = delete;
  SingleFlight& operator=(const SingleFlight&) = delete;

  // Returns f(), called here, or a copy of what a call that runs already returns; blocks until that
  // has ended. Throws what f threw, to all that wait for it; std::bad_alloc; what copying, hashing
  // and comparing keys throws, before f is called. f must not ask for the same key: it would wait
  // for itself.
  template <class F>
  requires std::is_invocable_r_v<Value, F> Value call(const Key& key, F&& f) {
    return call(Context::background(), key, std::forward<F>(f));
  }

  // As call(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns nullopt. Only waiting for another caller ends with the context: f, called
  // here, has to watch its context itself. If f throws then, all that wait for it get that.
  template <class F>
  requires std::is_invocable_r_v<Value, F> Value call(const Context& context, const Key& key,
                                                      F&& f) {
    std::error_code error;
    std::optional<Value> value = call(context, key, std::forward<F>(f), error);
    if (error) detail::throw_over(error, "SingleFlight::call");
    return *std::move(value);
  }
  template <class F>
  requires std::is_invocable_r_v<Value, F> std::optional<Value> call(const Context& context,
                                                                     const Key& key, F&& f,
                                                                     std::error_code& error) {
    error = detail::end_of(context);
    if (error) return std::nullopt;
    Boarding boarding = board(key);
    Flight& flight = *boarding.flight;
    if (boarding.is_first) {
      fly(flight, std::forward<F>(f));
      land(flight);
    } else {
      (void)flight.landed.recv(context, error);
      if (error) return std::nullopt;
    }
    if (flight.exception) std::rethrow_exception(flight.exception);
    return flight.value;
  }

  // The next caller with this key computes anew, even if a call still runs. Never blocks for long.
  void forget(const Key& key) {
    std::lock_guard hold(mutex_);
    flights_.erase(key);
  }

 private:
  struct Flight {
    explicit Flight(const Key& its_key) : key(its_key) {}
    const Key key;      // a copy: f may change the caller's, or move from it
    Chan<void> landed;  // closed once `value` or `exception` is set; neither changes then
    std::optional<Value> value;
    std::exception_ptr exception;
  };
  struct Boarding {
    std::shared_ptr<Flight> flight;
    bool is_first;
  };

  Boarding board(const Key& key) {
    std::lock_guard hold(mutex_);
    if (auto at = flights_.find(key); at != flights_.end()) return {at->second, false};
    return {flights_.emplace(key, std::make_shared<Flight>(key)).first->second, true};
  }

  template <class F>
  static void fly(Flight& flight, F&& f) {
    try {
      flight.value.emplace(std::invoke(std::forward<F>(f)));
    } catch (...) {
      flight.exception = detail::caught();
    }
  }

  void land(Flight& flight) noexcept {
    {
      std::lock_guard hold(mutex_);
      // After a forget() there may be another one.
      auto at = find_locked(flight);
      if (at != flights_.end() && at->second.get() == &flight) flights_.erase(at);
    }
    flight.landed.close();
  }

  // The hash, or the comparison, may throw, though it has not for the same key before. Those who
  // wait for the flight must not wait for ever: then this looks at each flight, and erase() needs
  // no hash that may throw: it is kept beside the key.
  auto find_locked(const Flight& flight) noexcept {
    try {
      return flights_.find(flight.key);
    } catch (...) {
      (void)detail::caught();
      return std::find_if(flights_.begin(), flights_.end(),
                          [&](const auto& one) { return one.second.get() == &flight; });
    }
  }

  Mutex mutex_;
  // guarded by mutex_
  std::unordered_map<Key, std::shared_ptr<Flight>, Hash, Equal> flights_;
};

}  // namespace magpie
