// runtime.h: starts the scheduler, shows and sets how it works.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/detail/caught.h>
#include <magpie/detail/sanitized.h>

namespace magpie {

// What the runtime does when every goroutine waits and no other thread of the process could wake
// one: there is no plain thread but those that have promised not to (Bystander).
enum class DeadlockPolicy {
  exit,          // print what each goroutine waits for to stderr, and exit with code 2
  abort = exit,  // another name for it
  report,        // print the same once, and go on waiting
  ignore,        // go on waiting
};

// While it lives, the calling plain thread promises to wake no goroutine, and to start no thread
// that does. So the runtime can report a deadlock although the thread is there. A thread that has
// used the runtime and has ended needs no promise. Nests. Does nothing on a goroutine.
class [[nodiscard]] MAGPIE_API Bystander {
 public:
  Bystander() noexcept;
  ~Bystander();
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

 private:
  const bool promises_;
};

// What SIGQUIT (Ctrl-\) does while a runtime runs, unless the program handles the signal itself.
enum class QuitPolicy {
  dump,  // prints all goroutines to stderr (dump.h), and the program goes on
  exit,  // prints the same, and ends the program with code 2, as Go does
  off,   // the signal is left alone
};

// How run() sets the runtime up.
struct Options {
  // How many goroutines run at the same time. 0: MAGPIE_PROCS if set, else what this process may
  // use: its CPU affinity and every cgroup quota above it, read again about once a second.
  int procs = 0;

  // The most OS threads. When no more may be made, goroutines wait for the existing threads.
  int max_threads = 10'000;

  // The address space of a goroutine's stack, in whole pages. Memory is used as it is touched.
  std::size_t stack_size = 256 * 1024;

  // A goroutine that runs longer than this gives way to goroutines that wait: a signal stops its
  // thread, wherever it is, and the thread sleeps until it is its turn again. That happens sooner
  // if no P is free and a timer is due or a goroutine was woken. Without preempt (or with
  // MAGPIE_DEBUG=preempt=off) a loop that never calls the runtime keeps its P. A loop that calls it
  // without ever waiting there gives way at such a call, after a tenth of a second of CPU time.
  std::chrono::microseconds time_slice{10'000};
  bool preempt = true;
  // 0: SIGURG. The runtime's threads let the signal in even if the caller of run() blocks it.
  int preempt_signal = 0;
  // The most threads that are stopped at a time. Beyond that, stopped threads take turns.
  int max_preempted = 100;

  // Binds the thread that holds a P to one CPU; each P keeps its CPU while the number of Ps and the
  // CPUs of the process stay the same. Ps beyond the number of CPUs share. Child processes of
  // fork() and Process may use all CPUs; child processes of posix_spawn(), vfork() and system()
  // inherit the one CPU.
  bool pin = false;

  // What to do when no goroutine can ever run again.
  DeadlockPolicy on_deadlock = DeadlockPolicy::exit;

  QuitPolicy on_quit = QuitPolicy::dump;

  // Reports on stderr each goroutine that waits for a lock (Mutex, RWMutex, Semaphore, Once) for
  // longer than this, with its stack and the owner, and each cycle of goroutines that wait for each
  // other. 0: does not look.
  std::chrono::milliseconds report_blocked_after{0};
  // Reports each goroutine that computes, or blocks in a call that blocking() does not declare, for
  // longer than this, with its stack at that moment; at most five a second. See on_slow() in
  // dump.h. 0: MAGPIE_DEBUG=slow=... if set, else does not look.
  std::chrono::microseconds report_slow{0};
};

namespace detail {
// Keeps a result until run() returns it.
template <class R>
using ResultOf =
    std::conditional_t<std::is_void_v<R>, char,
                       std::conditional_t<std::is_reference_v<R>, std::add_pointer_t<R>, R>>;

[[MAGPIE_BUILT_ALIKE]] MAGPIE_API void run_main(const Options& options, void (*body)(void*),
                                                void* argument);
}  // namespace detail

// Starts the runtime, runs `main` as goroutine 1 and returns its result; an exception from main
// leaves run(). Blocks the calling thread, which becomes one of the runtime's. When main returns,
// run() drops all other goroutines: it waits for a running one until its next call into the
// runtime, and the others never go on. To unlock or to release something is such a call, even if no
// other caller waits for it. May be called again afterwards. Throws std::logic_error if a runtime
// runs already, std::invalid_argument for options (or a MAGPIE_PROCS) that make no sense,
// std::bad_alloc or std::system_error if resources are short: it needs one thread besides the
// caller's.
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
          } else if constexpr (std::is_reference_v<Result>) {
            Result result = std::forward<F>(mine.main)();
            mine.result.emplace(std::addressof(result));
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
    return static_cast<Result>(**call.result);
  } else if constexpr (!std::is_void_v<Result>) {
    return std::move(*call.result);
  }
}

template <class F>
auto run(F&& main) -> std::invoke_result_t<F&&> {
  return run(Options{}, std::forward<F>(main));
}

// How many goroutines run at the same time now. 0: no runtime runs.
MAGPIE_API int procs();

// Changes procs() while goroutines run, stops it from following quotas, and returns the old value.
// Blocks until every running goroutine has given up its P: a moment. Throws std::invalid_argument
// for n < 1, std::logic_error if no runtime runs, std::bad_alloc if there is no memory for that
// many.
MAGPIE_API int set_procs(int n);

// The number of CPUs that this process may run on: its affinity when the runtime started, or now if
// none runs.
MAGPIE_API int num_cpu();

// The number of goroutines that have been started and have not ended.
MAGPIE_API std::size_t num_goroutines();

// The number of OS threads that run goroutines. Two more threads serve them, or three with
// Options::report_blocked_after or report_slow.
MAGPIE_API int num_threads();

// Changes the limit on threads and returns the old one. Threads above a lower limit stay. Throws
// std::invalid_argument for n < 1, std::logic_error if no runtime runs.
MAGPIE_API int set_max_threads(int n);

// The calling goroutine's number, from 1. 0: the caller is a plain thread.
MAGPIE_API std::uint64_t goroutine_id();

// Lets other goroutines run and returns when it is the caller's turn again. A plain thread yields
// its CPU.
MAGPIE_API void yield();

}  // namespace magpie
