// blocked_signals.h: which signals the calling thread blocks.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace magpie::support {

inline bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

}  // namespace magpie::support
