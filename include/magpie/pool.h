// pool.h: lends things that are dear to make, such as connections, again and again.
#pragma once

#include <magpie/detail/cxx20.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <magpie/context.h>
#include <magpie/detail/callable.h>
#include <magpie/detail/with_context.h>
#include <magpie/mutex.h>
#include <magpie/semaphore.h>
#include <magpie/time.h>

namespace magpie {

template <class T>
struct PoolOptions {
  // What has been idle for longer is not lent again: take() and prune() destroy it.
  std::chrono::nanoseconds idle_time = std::chrono::nanoseconds::max();
  // Asked before something idle is lent again; it may block. False: it is destroyed.
  std::function<bool(T&)> is_healthy = {};
};

// At most `most` things of type T, lent and idle ones together. Callers that wait are served in the
// order in which they came, and get what came back last. Any number of goroutines and threads may
// use a pool at once. T need not be movable. A lease of a goroutine that run() drops never ends.
template <class T>
class Pool {
 public:
  class Lease;
  using Options = PoolOptions<T>;

  // make(context), or make(), returns a new T, with the context of the caller of take(). Throws
  // std::invalid_argument unless `most` is at least 1 and make is not empty, std::bad_alloc.
  template <class Make>
  requires(std::is_invocable_r_v<T, std::decay_t<Make>&, const Context&> ||
           std::is_invocable_r_v<T, std::decay_t<Make>&>)
      Pool(std::int64_t most, Make&& make, Options options = {})
      : state_(std::make_shared<State>(most, maker(std::forward<Make>(make)), std::move(options))) {
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Destroys what is idle. Leases may outlive the pool; what they lend is destroyed with them.
  ~Pool() { state_->close(); }

  // Lends something idle and healthy, or makes something new. Blocks while `most` are lent. Throws
  // what make and is_healthy throw; then nothing is lent.
  Lease take() { return take(Context::background()); }

  // As take(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns an empty Lease. Only waiting ends with the context: make has to watch it.
  Lease take(const Context& context) {
    std::error_code error;
    Lease lease = take(context, error);
    if (error) detail::throw_over(error, "Pool::take");
    return lease;
  }
  Lease take(const Context& context, std::error_code& error) {
    if (!state_->places.acquire(context, error)) return Lease();
    Lease lease(state_);  // from now on it gives the place back
    while (std::unique_ptr<Item> too_old = state_->take_expired()) {
    }
    while (std::unique_ptr<Item> item = state_->take_newest()) {
      if (!state_->is_healthy(item->value)) continue;
      lease.item_ = std::move(item);
      return lease;
    }
    lease.item_ = state_->make(context);
    return lease;
  }

  // Destroys what has been idle for too long. For a Ticker: take() does it, too. Blocks only for
  // destructors of T.
  void prune() {
    while (state_->places.try_acquire()) {
      Lease place(state_);
      if (state_->take_expired() == nullptr) return;
    }
  }

  // How many are idle. A snapshot.
  std::size_t idle() const { return state_->count_idle(); }

 private:
  struct Item {
    T value;
    TimePoint idle_since{};
  };
  using Maker = std::function<std::unique_ptr<Item>(const Context&)>;

  // A goroutine that has an Item in its hands has a place, too. A new Item is made only when none
  // is idle. So there are never more Items than places.
  struct State {
    State(std::int64_t most, Maker its_make, Options its_options)
        : make(std::move(its_make)), options(std::move(its_options)), places(checked(most)) {}

    static std::int64_t checked(std::int64_t most) {
      if (most < 1) throw std::invalid_argument("magpie: a Pool needs room for one at least");
      return std::min(most, Semaphore::max());  // more than memory can hold
    }

    bool is_healthy(T& value) const { return !options.is_healthy || options.is_healthy(value); }

    // Null: none has been idle for too long.
    std::unique_ptr<Item> take_expired() {
      std::lock_guard hold(mutex);
      if (idle.empty() || steady_now() - idle.front()->idle_since <= options.idle_time)
        return nullptr;
      std::unique_ptr<Item> oldest = std::move(idle.front());
      idle.erase(idle.begin());
      return oldest;
    }

    // Null: none is idle.
    std::unique_ptr<Item> take_newest() {
      std::lock_guard hold(mutex);
      if (idle.empty()) return nullptr;
      std::unique_ptr<Item> newest = std::move(idle.back());
      idle.pop_back();
      return newest;
    }

    // Moves from `item` unless the pool is gone or there is no memory to keep it.
    void give_back(std::unique_ptr<Item>& item) noexcept try {
      item->idle_since = steady_now();
      std::lock_guard hold(mutex);
      if (!is_closed) idle.push_back(std::move(item));
    } catch (const std::bad_alloc&) {
    }

    std::size_t count_idle() {
      std::lock_guard hold(mutex);
      return idle.size();
    }

    void close() {
      std::vector<std::unique_ptr<Item>> last;  // destroyed without the lock
      std::lock_guard hold(mutex);
      is_closed = true;
      last.swap(idle);
    }

    static TimePoint steady_now() { return std::chrono::steady_clock::now(); }

    // fixed after construction
    const Maker make;
    const Options options;

    Semaphore places;
    Mutex mutex;
    // guarded by mutex
    std::vector<std::unique_ptr<Item>> idle;  // the oldest first
    bool is_closed = false;
  };

  template <class Make>
  static Maker maker(Make&& make) {
    detail::check_not_empty(make);
    auto its = std::make_shared<std::decay_t<Make>>(std::forward<Make>(make));
    return [its](const Context& context) {
      if constexpr (std::is_invocable_r_v<T, std::decay_t<Make>&, const Context&>) {
        return std::unique_ptr<Item>(new Item{(*its)(context)});
      } else {
        (void)context;
        return std::unique_ptr<Item>(new Item{(*its)()});
      }
    };
  }

  const std::shared_ptr<State> state_;
};

// Something lent. One goroutine or thread may use it at a time.
template <class T>
class [[nodiscard]] Pool<T>::Lease {
 public:
  Lease() noexcept = default;  // empty
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease other) noexcept {
    std::swap(state_, other.state_);
    std::swap(item_, other.item_);
    return *this;
  }
  // Gives it back to the pool. Never blocks for long.
  ~Lease() {
    if (state_ == nullptr) return;
    if (item_ != nullptr) state_->give_back(item_);
    leave();
  }

  T& operator*() const { return item_->value; }
  T* operator->() const { return &item_->value; }
  explicit operator bool() const noexcept { return item_ != nullptr; }

  // Destroys it, for instance because the connection is broken. The pool may make another one. The
  // lease is empty then.
  void discard() {
    if (state_ != nullptr) leave();
  }

 private:
  friend class Pool;
  explicit Lease(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  void leave() {
    item_.reset();
    std::exchange(state_, nullptr)->places.release();
  }

  std::shared_ptr<State> state_;  // null: empty; else the lease has a place
  std::unique_ptr<Item> item_;
};

}  // namespace magpie
