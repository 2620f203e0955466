#include "base/thread_end.h"

#include <cxxabi.h>

extern "C" [[gnu::visibility("hidden")]] void* __dso_handle;  // NOLINT: the C++ ABI calls it so

namespace magpie::base {

void at_thread_end(void (*call)(void*), void* argument) {
  abi::__cxa_thread_atexit(call, argument, &__dso_handle);
}

}  // namespace magpie::base
