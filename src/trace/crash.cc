#include "trace/crash.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>

#include "base/atomic.h"

namespace magpie::trace {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

struct sigaction handlers_before[std::size(kSignals)];
// atomic, a hint: the first thread that takes it has the last words
base::Atomic<void (*)()> words{nullptr};

void on_crash(int signal, siginfo_t* info, void* context) {
  if (auto* last_words = words.exchange(nullptr, base::acq_rel)) last_words();
  const struct sigaction* its = nullptr;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] == signal) its = &handlers_before[i];
  }
  if ((its->sa_flags & SA_SIGINFO) != 0) return its->sa_sigaction(signal, info, context);
  if (its->sa_handler != SIG_DFL && its->sa_handler != SIG_IGN) return its->sa_handler(signal);
  if (its->sa_handler == SIG_IGN) return;
  // The default: a fault happens again, and what was sent is sent again.
  sigaction(signal, its, nullptr);
  if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), gettid(), signal);
}

}  // namespace

void install_crash_handlers(void (*last_words)()) {
  words.store(last_words, base::release);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action = {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(kSignals[i], &action, &handlers_before[i]);
  }
}

void remove_crash_handlers() {
  words.store(nullptr, base::relaxed);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction now;
    sigaction(kSignals[i], nullptr, &now);
    bool is_ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_crash;
    if (is_ours) sigaction(kSignals[i], &handlers_before[i], nullptr);
  }
}

}  // namespace magpie::trace
