// blocking.h: calls that block the thread, and goroutines that stay on theirs.
#pragma once

#include <magpie/detail/cxx20.h>

#include <functional>
#include <type_traits>
#include <utility>

#include <magpie/detail/api.h>

namespace magpie {

namespace detail {
// Declares that the calling goroutine is about to block its thread. Does nothing on a plain thread.
class MAGPIE_API BlockingCall {
 public:
  BlockingCall() noexcept;
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

 private:
  bool outermost_;
};
}  // namespace detail

// Calls f, which may block the thread: in a system call, in a library, in a foreign lock. Meanwhile
// other goroutines run on other threads. Returns what f returns and throws what f throws. Costs a
// few nanoseconds if f is quick. Afterwards the goroutine may be on another thread. A blocking call
// without this does no harm: the runtime notices it after some hundred microseconds.
template <class F>
decltype(auto) blocking(F&& f) {
  detail::BlockingCall call;
  return std::invoke(std::forward<F>(f));
}

// Keeps the calling goroutine on its OS thread, and all others away from that thread, while it
// lives: for libraries that keep state per thread. Nests. Slows the goroutine down, since each wait
// switches threads. If the goroutine ends while one lives, its thread ends too, unless it is the
// thread that called run(). Does nothing on a plain thread.
class MAGPIE_API ThreadLock {
 public:
  ThreadLock() noexcept;
  ~ThreadLock();
  ThreadLock(const ThreadLock&) = delete;
  ThreadLock& operator=(const ThreadLock&) = delete;
};

}  // namespace magpie
