// os.h: the calls to the system that may fail for lack of something, in one place so that tests can make
// them fail. All are off the hot path.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <cstddef>

namespace magpie::base {

struct Os {
  void* (*map)(void* address, std::size_t length, int protection, int flags, int fd, off_t offset);
  int (*create_thread)(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*),
                       void* argument);
};

// The calls in use. Tests may replace them before run().
Os& os();

}  // namespace magpie::base
