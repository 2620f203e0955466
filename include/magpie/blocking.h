// blocking.h: calls that block the thread, and goroutines that stay on theirs.
#pragma once

#include <magpie/detail/cxx20.h>

#include <functional>
#include <type_traits>
#include <utility>

namespace magpie {

namespace detail {
// Says that the calling goroutine is about to block its thread. On a plain thread: nothing.
class BlockingCall {
 public:
  BlockingCall() noexcept;
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

 private:
  bool outermost_;
};
}  // namespace detail

// Calls f, which may block the thread: in a system call, a library, a lock of somebody else's. Other goroutines go on
// on other threads meanwhile. Returns what f returns; throws what it throws. Costs a few nanoseconds when f is
// quick. Afterwards the goroutine may be on another thread. Calls that are not declared like this do no harm either;
// they are found out after some hundred microseconds.
template <class F>
decltype(auto) blocking(F&& f) {
  detail::BlockingCall call;
  return std::invoke(std::forward<F>(f));
}

// While it lives the calling goroutine stays on its OS thread, and no other goroutine runs on that: for libraries that
// keep state per thread. Nests. Slows the goroutine down: whenever it waits, threads have to be switched. A goroutine that
// ends while one lives ends its thread, unless it is the one that called run(). On a plain thread: nothing.
class ThreadLock {
 public:
  ThreadLock() noexcept;
  ~ThreadLock();
  ThreadLock(const ThreadLock&) = delete;
  ThreadLock& operator=(const ThreadLock&) = delete;
};

}  // namespace magpie
