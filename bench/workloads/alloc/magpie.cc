// alloc: go() with a small closure must not allocate once the runtime is warm.
//
// This program replaces operator new, malloc and mmap, of the whole process, by counting ones.
// After some rounds of warm-up it counts the calls, of all threads, while one more round of
// goroutines is started and joined.
#include <magpie/magpie.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "measure.h"

namespace {

// Plain counts, read after the round was joined: relaxed is enough.
constexpr auto kRelaxed = std::memory_order_relaxed;
std::atomic<long> new_calls{0};
std::atomic<long> malloc_calls{0};
std::atomic<long> mmap_calls{0};

}  // namespace

// glibc's own entry points, below the names that are replaced here.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  malloc_calls.fetch_add(1, kRelaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  malloc_calls.fetch_add(1, kRelaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  malloc_calls.fetch_add(1, kRelaxed);
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  malloc_calls.fetch_add(1, kRelaxed);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  malloc_calls.fetch_add(1, kRelaxed);
  *result = __libc_memalign(alignment, size);
  return *result != nullptr ? 0 : ENOMEM;
}
void* mmap(void* address, std::size_t length, int protection, int flags, int fd, off_t offset) {
  mmap_calls.fetch_add(1, kRelaxed);
  long result = syscall(SYS_mmap, address, length, protection, flags, fd, offset);
  return reinterpret_cast<void*>(result);
}
}

void* operator new(std::size_t size) {
  new_calls.fetch_add(1, kRelaxed);
  if (void* memory = __libc_malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  new_calls.fetch_add(1, kRelaxed);
  if (void* memory = __libc_memalign(static_cast<std::size_t>(alignment), size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, std::size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { free(memory); }

namespace {

void start_and_join(long goroutines, std::atomic<long>& sum) {
  magpie::WaitGroup all;
  all.add(static_cast<int>(goroutines));
  for (long i = 0; i < goroutines; ++i) {
    magpie::go([&all, &sum, i] {  // three words: a small closure
      sum.fetch_add(i, kRelaxed);
      all.done();
    });
  }
  all.wait();
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long goroutines = args.number("goroutines", 10'000);
  long warm_up_rounds = args.number("warm_up_rounds", 20);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    std::atomic<long> sum{0};
    for (long i = 0; i < warm_up_rounds; ++i) start_and_join(goroutines, sum);

    long warm_up_calls =
        new_calls.load(kRelaxed) + malloc_calls.load(kRelaxed) + mmap_calls.load(kRelaxed);
    long new_before = new_calls.load(kRelaxed);
    long malloc_before = malloc_calls.load(kRelaxed);
    long mmap_before = mmap_calls.load(kRelaxed);
    start_and_join(goroutines, sum);
    long by_new = new_calls.load(kRelaxed) - new_before;
    long by_malloc = malloc_calls.load(kRelaxed) - malloc_before;
    long by_mmap = mmap_calls.load(kRelaxed) - mmap_before;

    bench::report("warm_up_calls", static_cast<double>(warm_up_calls));
    bench::report("new_calls", static_cast<double>(by_new));
    bench::report("malloc_calls", static_cast<double>(by_malloc));
    bench::report("mmap_calls", static_cast<double>(by_mmap));
    bench::report("allocations", static_cast<double>(by_new + by_malloc + by_mmap));
  });
}
