// circuit_breaker.h: stops calling what keeps failing, and tries again after a while.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/sync.h>

namespace magpie {

// Thrown by CircuitBreaker::call() instead of calling.
class MAGPIE_API CircuitOpen : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

//            `failures` in a row                    after `open_for`
//   closed ----------------------> open ------------------------------> half open
//     ^                             ^                                     |   |
//     |                             +------------- a trial failed --------+   |
//     +------------------------- `trials` of them succeeded ------------------+
//
// Only calls that began since the breaker last opened or closed count. Calls of goroutines that
// run() has dropped are forgotten. Any number of goroutines and threads may use a breaker at once.
// Nothing here blocks for long.
class MAGPIE_API CircuitBreaker {
 public:
  struct Options {
    int failures = 5;                                              // in a row, that open it
    std::chrono::nanoseconds open_for = std::chrono::seconds(10);  // before it is tried again
    int trials = 1;  // calls let through at a time while half open; that many successes close it
  };
  enum class State { closed, open, half_open };

  // Throws std::invalid_argument for options below 1.
  CircuitBreaker() : CircuitBreaker(Options{}) {}
  explicit CircuitBreaker(const Options& options);
  CircuitBreaker(const CircuitBreaker&) = delete;
  CircuitBreaker& operator=(const CircuitBreaker&) = delete;

  // Calls f and returns what f returns. An exception from f counts as a failure and is passed on.
  // Throws CircuitOpen, without calling f, while the breaker is open, or half open with enough
  // trials under way.
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

  // The same in parts, for calls that do not fail by throwing: if allow() returns true, call one of
  // the others afterwards. The breaker cannot know which call they end, so it takes the earliest
  // one that is under way. If some calls take much longer than others, and than `open_for`, use
  // call().
  bool allow();
  void record_success();
  void record_failure();

  State state() const;

 private:
  enum class Result { success, failure };

  // Calls under way, and how many of them belong to goroutines of the run() that run_ names.
  struct Calls {
    std::int64_t all = 0;
    std::int64_t in_run = 0;
    void begin(bool by_goroutine) {
      ++all;
      if (by_goroutine) ++in_run;
    }
    // It is not known for sure which call ended. If a goroutine reports it, a goroutine most likely
    // began the call.
    void end(bool by_goroutine) {
      --all;
      if (in_run > 0 && (by_goroutine || in_run > all)) --in_run;
    }
    void forget_run() { all -= std::exchange(in_run, 0); }
    void add(Calls others) {
      all += others.all;
      in_run += others.in_run;
    }
  };

  // One call, and how it ended: as a failure unless succeed() was called.
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
  void forget_dropped_locked();

  // fixed after construction
  const Options options_;

  mutable Mutex mutex_;
  // guarded by mutex_
  bool closed_ = true;
  int failures_in_a_row_ = 0;       // while closed
  std::int64_t open_until_ns_ = 0;  // while not closed: half open after that
  Calls trials_under_way_;
  int trials_succeeded_ = 0;
  std::uint64_t epoch_ = 0;  // a new one begins whenever it opens or closes
  Calls under_way_;          // by allow(), of this epoch
  Calls late_;               // by allow(), of earlier ones
  std::uint64_t run_ = 0;    // the run() whose goroutines' calls are counted; 0: none yet
};

}  // namespace magpie
