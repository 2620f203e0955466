#include "sched/threads/overflow.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "base/check.h"
#include "sched/current.h"
#include "stack/guard.h"

namespace magpie::sched {
namespace {

constexpr std::size_t kSignalStackBytes = 64 * 1024;

struct sigaction before_segv, before_bus;

void report_if_overflow(M* m, const void* address) {
  magpie::stack::Stack* stack = m == nullptr ? nullptr : m->current_stack();
  if (stack == nullptr || !stack->in_guard(address)) return;
  std::size_t size = stack->size();
  G* g = m->current;
  if (g == nullptr)
    base::fatal("the scheduler overflowed a stack of %zu bytes; this is a bug in magpie", size);
  const char* name = g->name();
  base::fatal(
      "goroutine %lu%s%s%s overflowed its stack of %zu bytes; give it more with "
      "go(GoOptions{.stack_size = %zu}, ...), or all of them with Options::stack_size",
      static_cast<unsigned long>(g->id), *name != '\0' ? " (" : "", name, *name != '\0' ? ")" : "",
      size, 4 * size);
}

// Another process or thread sent the signal, with kill() and the like: there is no address, and no
// instruction that would fault again.
bool was_sent(const siginfo_t* info) { return info->si_code <= 0; }

void on_fault(int signal, siginfo_t* info, void* context) {
  if (!was_sent(info)) report_if_overflow(current_m(), info->si_addr);
  const struct sigaction& before = signal == SIGSEGV ? before_segv : before_bus;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else if (before.sa_handler == SIG_IGN && was_sent(info)) {
    return;
  } else {
    // The default: fault again with the default action in place, or send the same signal once more.
    sigaction(signal, &before, nullptr);
    if (was_sent(info)) syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signal, info);
  }
}

}  // namespace

void install_overflow_handler() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before_segv);
  sigaction(SIGBUS, &action, &before_bus);
}

namespace {

// A handler that the program installed meanwhile stays.
void remove_handler(int signal, const struct sigaction& before) {
  struct sigaction now;
  sigaction(signal, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault)
    sigaction(signal, &before, nullptr);
}

}  // namespace

void remove_overflow_handler() {
  remove_handler(SIGSEGV, before_segv);
  remove_handler(SIGBUS, before_bus);
}

void open_signal_stack(M* m) {
  stack_t now;
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  void* memory = mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return;  // an overflow will then be a bare segmentation fault
  stack_t mine = {};
  mine.ss_sp = memory;
  mine.ss_size = kSignalStackBytes;
  sigaltstack(&mine, nullptr);
  m->os.signal_stack = memory;
}

void close_signal_stack(M* m) {
  if (m->os.signal_stack == nullptr) return;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(m->os.signal_stack, kSignalStackBytes);
  m->os.signal_stack = nullptr;
}

}  // namespace magpie::sched
