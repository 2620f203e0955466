// inside_check.cc: linked into every test program: whoever allocates, frees or takes a foreign lock
// inside the runtime, with a P, ends the program with its stack; see sched/inside.h for why.
//
// The program's own malloc and its relatives come before the C library's, for everybody in the
// process. Sanitizers have theirs, and call a hook instead. Locks, stdio and dlopen are forwarded
// to whoever comes next, a sanitizer or the C library.
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/sanitizer.h"
#include "sched/run/inside.h"

#if defined(MAGPIE_ASAN) || defined(MAGPIE_TSAN)
#include <sanitizer/common_interface_defs.h>
#define MAGPIE_SANITIZED 1
// GCC ships the function without its header.
extern "C" int __sanitizer_install_malloc_and_free_hooks(  // NOLINT: the sanitizer's name
    void (*malloc_hook)(const volatile void*, std::size_t),
    void (*free_hook)(const volatile void*));
#endif

#define MAGPIE_UNCHECKED gnu::no_sanitize_thread, gnu::no_sanitize_address

namespace {

// From here on: before, the sanitizer may not have begun, nor have the addresses of the functions
// below been looked up.
std::atomic<bool> is_on{false};  // relaxed: written once, by the first thread
__thread bool is_reporting;      // what the report itself does is not checked
int out = STDERR_FILENO;         // as it was at first: tests redirect it, and lose what they caught

void say(const char* text) {
  [[maybe_unused]] ssize_t written = write(out, text, std::strlen(text));
}

[[noreturn, gnu::noinline]] void report(const char* what) {
  is_reporting = true;
  say("magpie: ");
  say(what);
  say(" inside the runtime with a P: a stopped goroutine may hold the lock that this waits for\n");
#if defined(MAGPIE_SANITIZED)
  dup2(out, STDERR_FILENO);
  __sanitizer_print_stack_trace();
#else
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), out);
#endif
  std::abort();
}

[[MAGPIE_UNCHECKED]] inline void check(const char* what) {
  if (!is_on.load(std::memory_order_relaxed) || is_reporting) return;
  if (magpie::sched::is_inside_with_p()) [[unlikely]]
    report(what);
}

// The next function of this name behind the program's own.
template <class F>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  [[MAGPIE_UNCHECKED]] F* get() {
    void* found = found_.load(std::memory_order_relaxed);  // relaxed: all find the same
    if (found == nullptr) {
      found = dlsym(RTLD_NEXT, name_);
      found_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<F*>(found);
  }

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

#if defined(MAGPIE_SANITIZED)
[[MAGPIE_UNCHECKED]] void on_malloc(const volatile void*, std::size_t) { check("allocation"); }
[[MAGPIE_UNCHECKED]] void on_free(const volatile void*) { check("free"); }
#endif

[[gnu::constructor]] void begin() {
  void* frame;
  backtrace(&frame, 1);  // loads what it needs, which allocates
#if defined(MAGPIE_SANITIZED)
  if (__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) == 0) {
    say("inside_check: no hook to be had\n");
    std::abort();
  }
#endif
  if (int copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3); copy >= 0) out = copy;
  is_on.store(true, std::memory_order_relaxed);
}

}  // namespace

extern "C" {

#if !defined(MAGPIE_SANITIZED)
void* __libc_malloc(std::size_t);                 // NOLINT: the C library's names
void __libc_free(void*);                          // NOLINT
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT

void* malloc(std::size_t size) {
  check("allocation");
  return __libc_malloc(size);
}
void free(void* memory) {
  if (memory != nullptr) check("free");
  __libc_free(memory);
}
void* calloc(std::size_t count, std::size_t size) {
  check("allocation");
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  check("allocation");
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  check("allocation");
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* memory = memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}
#else
// ThreadSanitizer calls no hook for these.
[[MAGPIE_UNCHECKED]] void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  static constinit Next<void*(std::size_t, std::size_t)> next("aligned_alloc");
  check("allocation");
  return next.get()(alignment, size);
}
[[MAGPIE_UNCHECKED]] int posix_memalign(void** result, std::size_t alignment,
                                        std::size_t size) noexcept {
  static constinit Next<int(void**, std::size_t, std::size_t)> next("posix_memalign");
  check("allocation");
  return next.get()(result, alignment, size);
}
#endif

// Not with ThreadSanitizer: it leaves out what OpenSSL locks (support/openssl_tsan.h), which it
// tells by the caller, and would take us for it.
#if !defined(MAGPIE_TSAN)
[[MAGPIE_UNCHECKED]] int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static constinit Next<int(pthread_mutex_t*)> next("pthread_mutex_lock");
  check("pthread_mutex_lock");
  return next.get()(mutex);
}
[[MAGPIE_UNCHECKED]] int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static constinit Next<int(pthread_rwlock_t*)> next("pthread_rwlock_rdlock");
  check("pthread_rwlock_rdlock");
  return next.get()(lock);
}
[[MAGPIE_UNCHECKED]] int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static constinit Next<int(pthread_rwlock_t*)> next("pthread_rwlock_wrlock");
  check("pthread_rwlock_wrlock");
  return next.get()(lock);
}
#endif

[[MAGPIE_UNCHECKED]] void* dlopen(const char* file, int mode) noexcept {
  static constinit Next<void*(const char*, int)> next("dlopen");
  check("dlopen");
  return next.get()(file, mode);
}
[[MAGPIE_UNCHECKED]] int fflush(std::FILE* file) {
  static constinit Next<int(std::FILE*)> next("fflush");
  check("fflush");
  return next.get()(file);
}
[[MAGPIE_UNCHECKED]] int fputs(const char* text, std::FILE* file) {
  static constinit Next<int(const char*, std::FILE*)> next("fputs");
  check("fputs");
  return next.get()(text, file);
}
[[MAGPIE_UNCHECKED]] std::size_t fwrite(const void* data, std::size_t size, std::size_t count,
                                        std::FILE* file) {
  static constinit Next<std::size_t(const void*, std::size_t, std::size_t, std::FILE*)> next(
      "fwrite");
  check("fwrite");
  return next.get()(data, size, count, file);
}
[[MAGPIE_UNCHECKED]] int vfprintf(std::FILE* file, const char* format, std::va_list arguments) {
  static constinit Next<int(std::FILE*, const char*, std::va_list)> next("vfprintf");
  check("vfprintf");
  return next.get()(file, format, arguments);
}

}  // extern "C"

namespace __cxxabiv1 {
// The lock of a static local that is about to be made.
extern "C" [[MAGPIE_UNCHECKED]] int __cxa_guard_acquire(__guard* guard) {
  static constinit Next<int(__guard*)> next("__cxa_guard_acquire");
  check("static local's lock");
  return next.get()(guard);
}
}  // namespace __cxxabiv1
