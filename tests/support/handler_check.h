// handler_check.h: included by a program of one file. Whatever code calls, inside a handler of a
// signal, what a handler must not call, ends the program with its stack: an allocation, a lock of
// pthreads, stdio, the dynamic linker.
//
// The program's own sigaction() comes before the C library's, for the runtime too. It puts a
// function of ours between the signal and the handler, so that the calls below know where they are.
// The child that a report of a crash makes is a process of its own: it may call what it likes.
// Sanitizers do all these things in handlers themselves: with one of them nothing is checked.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "base/sanitizer.h"

namespace handler_check {

inline std::atomic<int> calls_of[NSIG];  // of handlers, by signal
inline constexpr int kExitCode = 99;

#if defined(MAGPIE_ASAN) || defined(MAGPIE_TSAN)
inline constexpr bool kChecks = false;
#else
inline constexpr bool kChecks = true;

inline __thread int depth __attribute__((tls_model("initial-exec")));  // of handlers
inline pid_t checked_process = getpid();

inline void check(const char* what) {
  if (depth == 0 || syscall(SYS_getpid) != checked_process) return;
  depth = 0;
  constexpr char kText[] = "a handler of a signal calls what it must not: ";
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  (void)!write(STDERR_FILENO, what, std::strlen(what));
  (void)!write(STDERR_FILENO, "\n", 1);
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  _exit(kExitCode);
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

// What the program asked for. A new one for each call: a handler may run meanwhile.
inline struct sigaction asked_for[100'000];
inline std::atomic<std::size_t> asked_count{1};
inline std::atomic<std::size_t> current[NSIG];  // 0: ours is not between

inline void on_signal(int signal, siginfo_t* info, void* context) {
  calls_of[signal].fetch_add(1, std::memory_order_relaxed);
  const struct sigaction& its = asked_for[current[signal].load()];
  ++depth;
  if ((its.sa_flags & SA_SIGINFO) != 0) {
    its.sa_sigaction(signal, info, context);
  } else if (its.sa_handler != SIG_DFL && its.sa_handler != SIG_IGN) {
    its.sa_handler(signal);
  }
  --depth;
}

// Loads what a stack needs, and what is looked up once.
[[gnu::constructor]] inline void begin() {
  void* frame;
  backtrace(&frame, 1);
}
#endif

}  // namespace handler_check

#if !defined(MAGPIE_ASAN) && !defined(MAGPIE_TSAN)

extern "C" {

int sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) noexcept {
  using namespace handler_check;
  static auto* const real = next<int(int, const struct sigaction*, struct sigaction*)>("sigaction");
  const std::size_t was = current[signal].load();
  struct sigaction really_before;
  if (wanted == nullptr) {
    if (int failed = real(signal, nullptr, &really_before)) return failed;
  } else {
    const bool is_handler = (wanted->sa_flags & SA_SIGINFO) != 0 ||
                            (wanted->sa_handler != SIG_DFL && wanted->sa_handler != SIG_IGN);
    struct sigaction ours = *wanted;
    std::size_t now = 0;
    if (is_handler) {
      now = asked_count.fetch_add(1);
      asked_for[now] = *wanted;
      ours.sa_sigaction = on_signal;
      ours.sa_flags |= SA_SIGINFO;
      current[signal].store(now);
    }
    if (int failed = real(signal, &ours, &really_before)) return failed;
    if (!is_handler) current[signal].store(0);
  }
  if (before != nullptr) *before = was != 0 ? asked_for[was] : really_before;
  return 0;
}

[[noreturn]] void siglongjmp(sigjmp_buf to, int value) noexcept {
  using namespace handler_check;
  static auto* const real = next<void(sigjmp_buf, int)>("siglongjmp");
  if (depth != 0) --depth;  // out of the handler
  real(to, value);
  __builtin_unreachable();
}

void* __libc_malloc(std::size_t);                 // NOLINT: the C library's names
void __libc_free(void*);                          // NOLINT
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT

void* malloc(std::size_t size) noexcept {
  handler_check::check("malloc");
  return __libc_malloc(size);
}
void free(void* memory) noexcept {
  if (memory != nullptr) handler_check::check("free");
  __libc_free(memory);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  handler_check::check("calloc");
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  handler_check::check("realloc");
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  handler_check::check("aligned_alloc");
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  handler_check::check("posix_memalign");
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}

#define MAGPIE_BANNED(result, name, parameters, arguments)                   \
  result name parameters {                                                   \
    static auto* const real = handler_check::next<result parameters>(#name); \
    handler_check::check(#name);                                             \
    return real arguments;                                                   \
  }
MAGPIE_BANNED(int, pthread_mutex_lock, (pthread_mutex_t * m) noexcept, (m))
MAGPIE_BANNED(int, pthread_rwlock_rdlock, (pthread_rwlock_t * l) noexcept, (l))
MAGPIE_BANNED(int, pthread_rwlock_wrlock, (pthread_rwlock_t * l) noexcept, (l))
MAGPIE_BANNED(int, pthread_cond_signal, (pthread_cond_t * c) noexcept, (c))
MAGPIE_BANNED(int, pthread_cond_broadcast, (pthread_cond_t * c) noexcept, (c))
MAGPIE_BANNED(int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t* m), (c, m))
MAGPIE_BANNED(void*, dlopen, (const char* file, int mode) noexcept, (file, mode))
MAGPIE_BANNED(int, dladdr, (const void* address, Dl_info* info) noexcept, (address, info))
MAGPIE_BANNED(int, dl_iterate_phdr, (int (*visit)(dl_phdr_info*, std::size_t, void*), void* data),
              (visit, data))
MAGPIE_BANNED(int, fflush, (std::FILE * file), (file))
MAGPIE_BANNED(int, fputs, (const char* text, std::FILE* file), (text, file))
MAGPIE_BANNED(std::size_t, fwrite,
              (const void* data, std::size_t size, std::size_t count, std::FILE* file),
              (data, size, count, file))
MAGPIE_BANNED(int, vfprintf, (std::FILE * file, const char* format, std::va_list list),
              (file, format, list))
MAGPIE_BANNED(char*, strerror, (int number) noexcept, (number))
MAGPIE_BANNED(char*, getenv, (const char* name) noexcept, (name))
#undef MAGPIE_BANNED

}  // extern "C"

#endif
