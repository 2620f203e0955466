#include "trace/crash.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <new>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/guard.h"
#include "base/lock.h"

namespace magpie::trace {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

constexpr std::int64_t kPatienceNs = 10'000'000'000;
constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 1'000'000};

base::Lock changing;  // for the handlers
struct sigaction handlers_before[std::size(kSignals)];
bool is_installed[std::size(kSignals)];
// atomic, a hint: the first thread that takes it has the last words
base::Atomic<void (*)()> words{nullptr};
// The thread that has them; 0: none. atomic, a hint: other threads die later
base::Atomic<pid_t> speaker{0};

// A thread that dies while another has the last words would end the process in the middle of them.
void let_speak(pid_t me) {
  const std::int64_t until_ns = base::now_ns() + kPatienceNs;
  for (;;) {
    pid_t now = speaker.load(base::relaxed);
    if (now == 0 || now == me || base::now_ns() >= until_ns) return;
    nanosleep(&kNap, nullptr);
  }
}

void on_crash(int signal, siginfo_t* info, void* context) {
  pid_t me = gettid(), nobody = 0;
  if (speaker.compare_exchange_strong(nobody, me, base::relaxed, base::relaxed)) {
    if (auto* last_words = words.exchange(nullptr, base::acq_rel)) last_words();
    speaker.store(0, base::relaxed);
  } else {
    let_speak(me);
  }
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

namespace {

void install(std::size_t i) {
  struct sigaction action = {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(kSignals[i], &action, &handlers_before[i]);
  is_installed[i] = true;
}

// False: another handler is on top of ours, and may pass signals on to it. Ours stays.
bool remove(std::size_t i) {
  struct sigaction now;
  sigaction(kSignals[i], nullptr, &now);
  bool is_ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_crash;
  if (!is_ours) return false;
  sigaction(kSignals[i], &handlers_before[i], nullptr);
  is_installed[i] = false;
  return true;
}

}  // namespace

void install_crash_handlers(void (*last_words)()) {
  base::Guard hold(changing);
  words.store(last_words, base::release);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    if (!is_installed[i]) install(i);
  }
}

void remove_crash_handlers() {
  base::Guard hold(changing);
  words.store(nullptr, base::relaxed);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) (void)remove(i);
}

void forget_crash_handlers() {
  new (&changing) base::Lock;
  remove_crash_handlers();
}

void change_below_crash_handlers(void (*change)()) {
  base::Guard hold(changing);
  bool was_removed[std::size(kSignals)];
  for (std::size_t i = 0; i < std::size(kSignals); ++i) was_removed[i] = remove(i);
  change();
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    if (was_removed[i]) install(i);
  }
}

}  // namespace magpie::trace
