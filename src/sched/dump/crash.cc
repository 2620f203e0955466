#include "sched/dump/crash.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/sanitizer.h"
#include "context/frame_walk.h"
#include "sched/core/m.h"
#include "sched/current.h"

namespace magpie::sched {
namespace {

constexpr std::size_t kChildStackBytes = std::size_t{1} << 20;
constexpr std::size_t kTextBytes = std::size_t{8} << 20;
constexpr std::int64_t kChildPatienceNs = 5'000'000'000;
constexpr timespec kChildNap{.tv_sec = 0, .tv_nsec = 1'000'000};

// What the child writes and the parent prints: shared by both.
struct Shared {
  std::size_t length;
  char text[kTextBytes - sizeof(std::size_t)];

  static void append(void* to, const char* text, std::size_t length) {
    auto& self = *static_cast<Shared*>(to);
    if (length > sizeof self.text - self.length) return;
    std::memcpy(self.text + self.length, text, length);
    self.length += length;
  }
};

struct Job {
  void (*print)(Text&, Naming, const void*);
  const void* argument;
  Shared* shared;
};

[[maybe_unused]] int print_in_child(void* its) {
  auto& job = *static_cast<Job*>(its);
  // A broken heap must not report itself once more, nor wait for ever.
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // What the heap says of itself on stderr is of no use.
  close(STDERR_FILENO);
  {
    Text out(Shared::append, job.shared);
    job.print(out, Naming::by_symbols, job.argument);
  }
  syscall(SYS_exit_group, 0);
  return 0;
}

// False: the child failed.
[[maybe_unused]] bool wait_for(pid_t child) {
  const std::int64_t until_ns = base::now_ns() + kChildPatienceNs;
  for (;;) {
    int status = 0;
    pid_t ended = waitpid(child, &status, WNOHANG | __WALL);
    if (ended == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended < 0) return false;
    if (base::now_ns() >= until_ns) {
      kill(child, SIGKILL);
      waitpid(child, &status, __WALL);
      return false;
    }
    nanosleep(&kChildNap, nullptr);
  }
}

bool print_by_child(Job& job) {
#if defined(MAGPIE_TSAN)
  (void)job;  // a copy of a process that ThreadSanitizer watches does not get far
  return false;
#else
  void* stack = mmap(nullptr, kChildStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  void* memory = mmap(nullptr, kTextBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool done = false;
  if (stack != MAP_FAILED && memory != MAP_FAILED) {
    job.shared = static_cast<Shared*>(memory);
    // No exit signal: the program's handler of SIGCHLD is none of this child's business.
    pid_t child =
        clone(print_in_child, static_cast<char*>(stack) + kChildStackBytes, CLONE_UNTRACED, &job);
    done = child > 0 && wait_for(child);
    int descriptor = STDERR_FILENO;
    if (done) write_to_descriptor(&descriptor, job.shared->text, job.shared->length);
  }
  if (stack != MAP_FAILED) munmap(stack, kChildStackBytes);
  if (memory != MAP_FAILED) munmap(memory, kTextBytes);
  return done;
#endif
}

// The thread that reports; 0: none yet. atomic, a hint: the first has it
base::Atomic<pid_t> reporter{0};
base::Atomic<bool> is_reported{false};  // atomic, a hint: another thread may die now

// The first caller gets true. Other threads wait until it has reported: they would end the process
// in the middle of that. A fault in the report itself does not wait.
bool is_first_to_report() {
  pid_t me = gettid(), nobody = 0;
  if (reporter.compare_exchange_strong(nobody, me, base::relaxed, base::relaxed)) return true;
  const std::int64_t until_ns = base::now_ns() + 2 * kChildPatienceNs;
  while (nobody != me && !is_reported.load(base::relaxed) && base::now_ns() < until_ns)
    nanosleep(&kChildNap, nullptr);
  return false;
}

void wait_for_other_report() {
  if (reporter.load(base::relaxed) != 0) (void)is_first_to_report();
}

struct CallersStack {
  Frames frames;
};

void print_callers_stack(Text& out, Naming naming, const void* stack) {
  print_frames(out, static_cast<const CallersStack*>(stack)->frames, naming);
}

const char* signal_name(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGILL:
      return "SIGILL";
    case SIGFPE:
      return "SIGFPE";
    default:
      return "SIGABRT";
  }
}

}  // namespace

void print_with_symbols(void (*print)(Text&, Naming, const void*), const void* argument) {
  Job job{print, argument, nullptr};
  if (print_by_child(job)) return;
  int descriptor = STDERR_FILENO;
  Text out(write_to_descriptor, &descriptor);
  print(out, Naming::by_modules, argument);
}

[[gnu::noinline]] void report_stack_of_caller(const char* what, const void* interrupted) {
  M* m = current_m();
  if (m == nullptr || m->current == nullptr) return wait_for_other_report();
  G* g = m->current;
  if (!is_first_to_report()) return;
  {
    int descriptor = STDERR_FILENO;
    Text out(write_to_descriptor, &descriptor);
    const char* name = g->name();
    out.add("magpie: goroutine %llu%s%s%s %s\n", static_cast<unsigned long long>(g->id),
            *name != '\0' ? " (" : "", name, *name != '\0' ? ")" : "", what);
  }
  static CallersStack stack;  // once per process
  std::uintptr_t from = interrupted != nullptr
                            ? context::registers_of(*static_cast<const ucontext_t*>(interrupted)).pc
                            : reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  take_frames(stack.frames, from);
  print_with_symbols(print_callers_stack, &stack);
  is_reported.store(true, base::relaxed);
}

void report_fatal_signal(int signal, const siginfo_t* info, const void* interrupted) {
  char what[96];
  if (signal != SIGABRT && info->si_code > 0) {
    std::snprintf(what, sizeof what, "ends the program by %s, at address %p", signal_name(signal),
                  info->si_addr);
  } else {
    std::snprintf(what, sizeof what, "ends the program by %s", signal_name(signal));
  }
  report_stack_of_caller(what, interrupted);
}

}  // namespace magpie::sched
