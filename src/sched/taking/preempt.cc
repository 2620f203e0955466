#include "sched/taking/preempt.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "sched/current.h"
#include "sched/run/runtime.h"
#include "sched/taking/bound.h"

namespace magpie::sched {
namespace {

struct sigaction former;

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((former.sa_flags & SA_SIGINFO) != 0) {
    former.sa_sigaction(signal, info, context);
  } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
    former.sa_handler(signal);
  }
}

std::uint64_t id_of(const G* g) { return g == nullptr ? 0 : g->id; }

void on_stop(int signal, siginfo_t* info, void* context) {
  M* m = current_m();
  auto* interrupted = static_cast<const ucontext_t*>(context);
  bool was_asked = m != nullptr && m->sample.answer(*interrupted, id_of(m->current));
  // relaxed: sysmon set it before it sent the signal, and both are about this thread
  if (m == nullptr || !m->signalled.exchange(false, base::relaxed))
    return was_asked ? void() : pass_on(signal, info, context);
  if (m->grip.is_inside() || m->current == nullptr) return;
  // ThreadSanitizer keeps signals back. One for this thread of the parent may come in the child,
  // where nobody would let it go on.
  if (!runtime->preemption.is_of_this_process()) return;
  int saved_errno = errno;
  if (!m->grip.enter() && !m->grip.keep()) {
    // False: the runtime ends. Then the goroutine runs on without a P until it enters the runtime,
    // and ends there.
    m->stopped_at.store(interrupted, base::release);  // with Snapshot
    (void)wait_in_place(m, Line::stopped);
    m->stopped_at.store(nullptr, base::relaxed);
  }
  m->grip.leave();
  errno = saved_errno;
}

}  // namespace

bool Preemption::can_use(int signal) {
  if (signal == SIGKILL || signal == SIGSTOP) return false;
  if (signal == SIGSEGV || signal == SIGBUS) return false;  // see overflow.h
  if (signal > SIGSYS && signal < SIGRTMIN) return false;   // the C library's own
  return signal >= 0 && signal <= SIGRTMAX;
}

void Preemption::install(int signal, Stops stops) {
  signal_ = signal;
  stops_ = stops == Stops::yes;
  process_ = getpid();
  struct sigaction action = {};
  action.sa_sigaction = on_stop;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  if (sigaction(signal, &action, &former) != 0) signal_ = 0;
}

void Preemption::remove() {
  if (signal_ == 0) return;
  struct sigaction now;
  sigaction(signal_, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_stop)
    sigaction(signal_, &former, nullptr);
  signal_ = 0;
}

void Preemption::unblock(M* m) const {
  if (!works()) return;
  sigset_t mine, before;
  sigemptyset(&mine);
  sigaddset(&mine, signal_);
  pthread_sigmask(SIG_UNBLOCK, &mine, &before);
  m->os.signal_was_blocked = sigismember(&before, signal_) == 1;
}

void Preemption::let_in() const {
  if (!works()) return;
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, signal_);
  pthread_sigmask(SIG_UNBLOCK, &mine, nullptr);
}

void Preemption::block_again(M* m) const {
  if (!works() || !m->os.signal_was_blocked) return;
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, signal_);
  pthread_sigmask(SIG_BLOCK, &mine, nullptr);
}

void Preemption::stop(M* m) {
  m->signalled.store(true, base::relaxed);
  send(m);
}

bool Preemption::send(M* m) const {
  return signal_ != 0 && syscall(SYS_tgkill, getpid(), m->os.tid.load(base::relaxed), signal_) == 0;
}

}  // namespace magpie::sched
