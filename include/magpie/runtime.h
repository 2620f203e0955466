// runtime.h: starts the scheduler and tells and sets how it works.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include <magpie/detail/caught.h>
#include <magpie/detail/sanitized.h>

namespace magpie {

// When every goroutine waits, and the process has no thread but the runtime's that could wake one:
enum class DeadlockPolicy {
  exit,          // print what each goroutine waits for to stderr, and exit with code 2
  abort = exit,  // another name for it
  report,        // print the same once, and go on waiting
  ignore,        // go on waiting
};

// How run() sets the runtime up.
struct Options {
  // How many goroutines run at the same time. 0: MAGPIE_PROCS if set, else what this process may use:
  // its CPU affinity and every cgroup quota above it, re-read about once a second.
  int procs = 0;

  // OS threads, at most. When no more may be made, goroutines wait for the threads there are.
  int max_threads = 10'000;

  // Address space of a goroutine's stack, in whole pages; memory is used as it is touched.
  std::size_t stack_size = 256 * 1024;

  // A goroutine that runs longer than this gives way to others that wait, wherever it is: its thread is stopped by a
  // signal and sleeps until it is its turn again. Sooner if a timer is due or a goroutine was woken, and no P is free.
  // Without preempt (or with MAGPIE_DEBUG=preempt=off) a loop that never calls the runtime keeps its P.
  std::chrono::microseconds time_slice{10'000};
  bool preempt = true;
  int preempt_signal =
      0;  // 0: SIGURG; the runtime's threads let it in even if the caller of run() blocks it
  int max_preempted = 100;  // threads stopped at a time; beyond it, those stopped before take turns

  // Binds the thread that holds a P to one CPU, the same for the same P while CPUs last.
  bool pin = false;

  // What to do when no goroutine can ever run again.
  DeadlockPolicy on_deadlock = DeadlockPolicy::exit;
};

namespace detail {
// What a result is kept in until run() returns it.
template <class R>
using ResultOf =
    std::conditional_t<std::is_void_v<R>, char,
                       std::conditional_t<std::is_reference_v<R>,
                                          std::reference_wrapper<std::remove_reference_t<R>>, R>>;

[[MAGPIE_BUILT_ALIKE]] void run_main(const Options& options, void (*body)(void*), void* argument);
}  // namespace detail

// Starts the runtime, runs `main` as goroutine 1 and returns its result; an exception from it leaves run().
// Blocks the calling thread, which becomes one of the runtime's. Other goroutines that are left when main returns
// are dropped: those that run are waited for until their next call into the runtime, the others never go on.
// May be called again afterwards. Throws std::logic_error when a runtime runs already, std::invalid_argument
// for options (or MAGPIE_PROCS) that make no sense, std::bad_alloc or std::system_error for lack of resources.
template <class F>
auto run(const Options& options, F&& main) -> std::invoke_result_t<F&&> {
  using Result = std::invoke_result_t<F&&>;
  struct Call {
    F&& main;
    std::exception_ptr error{};
    std::optional<detail::ResultOf<Result>> result{};
  } call{std::forward<F>(main)};
  detail::run_main(
      options,
      [](void* argument) {
        auto& mine = *static_cast<Call*>(argument);
        try {
          if constexpr (std::is_void_v<Result>) {
            std::forward<F>(mine.main)();
          } else {
            mine.result.emplace(std::forward<F>(mine.main)());
          }
        } catch (...) {
          mine.error = detail::caught();
        }
      },
      &call);
  if (call.error) std::rethrow_exception(std::move(call.error));
  if constexpr (std::is_reference_v<Result>) {
    return static_cast<Result>(call.result->get());
  } else if constexpr (!std::is_void_v<Result>) {
    return std::move(*call.result);
  }
}

template <class F>
auto run(F&& main) -> std::invoke_result_t<F&&> {
  return run(Options{}, std::forward<F>(main));
}

// How many goroutines run at the same time now. 0 when no runtime runs.
int procs();

// Changes procs() while everything goes on, and stops it from following quotas; returns the old value.
// Blocks for a moment, until every goroutine that runs has given its P up. Throws std::invalid_argument for n < 1,
// std::logic_error when no runtime runs, std::bad_alloc when there is no memory for that many.
int set_procs(int n);

// CPUs that this process may run on (its affinity when the runtime started, else now).
int num_cpu();

// Goroutines that have been started and have not ended.
std::size_t num_goroutines();

// OS threads that the runtime has now to run goroutines. Two more look after them.
int num_threads();

// Changes the limit on threads; returns the old one. Threads above a lower limit stay.
// Throws std::invalid_argument for n < 1, std::logic_error when no runtime runs.
int set_max_threads(int n);

// The calling goroutine's number, from 1; 0 on a thread that is no goroutine.
std::uint64_t goroutine_id();

// Lets others run; returns when it is this goroutine's turn again. On a plain thread: yields the thread.
void yield();

}  // namespace magpie
