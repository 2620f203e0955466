// circuit_breaker.h: stops calling what keeps failing, and tries again after a while.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <magpie/sync.h>

namespace magpie {

// Thrown by CircuitBreaker::call instead of calling.
class CircuitOpen : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

//              `failures` in a row                    after `open_for`
//     closed ----------------------> open ------------------------------> half open
//       ^                             ^                                     |   |
//       |                             +------------- a trial failed --------+   |
//       +------------------------- `trials` of them succeeded ------------------+
//
// Only calls that began since it last opened or closed count: nothing is learnt from one that began before.
// May be used by many at once, from any thread. Nothing here blocks for long.
class CircuitBreaker {
 public:
  struct Settings {
    int failures = 5;                                              // in a row, that open it
    std::chrono::nanoseconds open_for = std::chrono::seconds(10);  // before it is tried again
    int trials = 1;  // calls let through at a time while half open; so many successes close it
  };
  enum class State { closed, open, half_open };

  // Throws std::invalid_argument for settings below 1.
  CircuitBreaker() : CircuitBreaker(Settings{}) {}
  explicit CircuitBreaker(const Settings& settings);
  CircuitBreaker(const CircuitBreaker&) = delete;
  CircuitBreaker& operator=(const CircuitBreaker&) = delete;

  // Returns what f returns. An exception from f counts as a failure and is passed on. Throws CircuitOpen, without calling f,
  // while it is open, or half open with enough trials under way.
  template <class F>
  std::invoke_result_t<F> call(F&& f) {
    Pass pass(*this);
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      std::invoke(std::forward<F>(f));
      pass.succeed();
    } else {
      decltype(auto) result = std::invoke(std::forward<F>(f));
      pass.succeed();
      return static_cast<std::invoke_result_t<F>>(std::forward<decltype(result)>(result));
    }
  }

  // The same in parts, for what does not fail by throwing: if allow() is true, one of the others must follow. Which of
  // these calls it was for is not said, so of those that are under way the earliest is taken to end first. If some
  // take much longer than others, and than `open_for`, use call().
  bool allow();
  void record_success();
  void record_failure();

  State state() const;

 private:
  enum class Result { success, failure };

  // Leave to call, and what came of it: a failure unless said otherwise.
  class Pass {
   public:
    explicit Pass(CircuitBreaker& breaker);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    void succeed() { result_ = Result::success; }

   private:
    CircuitBreaker& breaker_;
    std::uint64_t epoch_;
    Result result_ = Result::failure;
  };

  State state_locked(std::int64_t now_ns) const;
  bool allow_locked();
  void open_locked();
  void begin_epoch_locked();
  void learn_locked(Result result);
  void record(Result result);

  // fixed after construction
  const Settings settings_;

  mutable Mutex mutex_;
  // guarded by mutex_
  bool closed_ = true;
  int failures_in_a_row_ = 0;       // while closed
  std::int64_t open_until_ns_ = 0;  // while not closed: half open after that
  int trials_under_way_ = 0;
  int trials_succeeded_ = 0;
  std::uint64_t epoch_ = 0;     // a new one begins whenever it opens or closes
  std::int64_t under_way_ = 0;  // by allow(), of this epoch
  std::int64_t late_ = 0;       // by allow(), of earlier ones
};

}  // namespace magpie
