// os.h: the system calls that may fail for lack of a resource, in one place so that tests can make
// them fail. All are off the hot path.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>

namespace magpie::base {

// A function that may be replaced while others call it. Relaxed: there is nothing to see but the
// function.
template <class F>
class Replaceable {
 public:
  using Function = F;
  Replaceable(F* function) : function_(function) {}
  void operator=(F* function) { function_.store(function, std::memory_order_relaxed); }
  operator F*() const { return function_.load(std::memory_order_relaxed); }

 private:
  std::atomic<F*> function_;  // atomic, a hint: tests replace it before threads start
};

struct Os {
  Replaceable<void*(void* address, std::size_t length, int protection, int flags, int fd,
                    off_t offset)>
      map;
  Replaceable<int(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*),
                  void* argument)>
      create_thread;
};

// The calls in use. Tests may replace them at any time.
Os& os();

}  // namespace magpie::base
