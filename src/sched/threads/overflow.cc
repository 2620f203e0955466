#include "sched/threads/overflow.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/check.h"
#include "sched/current.h"
#include "sched/dump/crash.h"
#include "sched/dump/fault_guard.h"
#include "stack/guard.h"

namespace magpie::sched {
namespace {

constexpr std::size_t kSignalStackBytes = 64 * 1024;

constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
struct sigaction before[std::size(kFatal)];

struct sigaction& before_of(int signal) {
  return before[std::find(std::begin(kFatal), std::end(kFatal), signal) - std::begin(kFatal)];
}

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
  if (!was_sent(info)) jump_back_if_guarded(context);
  bool is_access = signal == SIGSEGV || signal == SIGBUS;
  if (is_access && !was_sent(info)) report_if_overflow(current_m(), info->si_addr);
  const struct sigaction& handler_before = before_of(signal);
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(signal, info, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(signal);
  } else if (handler_before.sa_handler == SIG_IGN && was_sent(info)) {
    return;
  } else {
    report_fatal_signal(signal, info, context);
    // The default: fault again with the default action in place, or send the same signal once more.
    sigaction(signal, &handler_before, nullptr);
    if (was_sent(info) || signal == SIGABRT)
      syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signal, info);
  }
}

}  // namespace

namespace {

struct sigaction ours() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  return action;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fault;
}

}  // namespace

void install_overflow_handler() {
  struct sigaction action = ours();
  for (int signal : kFatal) sigaction(signal, &action, &before_of(signal));
}

// A handler that the program installed meanwhile stays.
void remove_overflow_handler() {
  for (int signal : kFatal) {
    struct sigaction now;
    sigaction(signal, nullptr, &now);
    if (is_ours(now)) sigaction(signal, &before_of(signal), nullptr);
  }
}

// The program's own handler comes first again afterwards. A fault of the program's meanwhile goes
// to what was there before the runtime.
void FaultHandling::begin() {
  struct sigaction action = ours();
  sigaction(SIGSEGV, &action, &segv_);
  sigaction(SIGBUS, &action, &bus_);
}

void FaultHandling::end() {
  if (!is_ours(segv_)) sigaction(SIGSEGV, &segv_, nullptr);
  if (!is_ours(bus_)) sigaction(SIGBUS, &bus_, nullptr);
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
