// without_sigpipe.h: writes to a pipe or socket that nobody reads, without dying of it.
#pragma once

#include <signal.h>

#include <cerrno>
#include <ctime>

namespace magpie::base {

// Keeps SIGPIPE from this thread. A SIGPIPE that was pending before, because the program blocks it,
// stays pending.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    if (!was_pending_) pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~WithoutSigpipe() {
    if (!was_pending_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

  // After EPIPE, which sent one to this thread.
  void take_it() {
    if (was_pending_) return;
    timespec at_once{};
    while (sigtimedwait(&sigpipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }

 private:
  bool was_pending_;
  sigset_t sigpipe_, before_;
};

}  // namespace magpie::base
