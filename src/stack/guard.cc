#include "stack/guard.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/check.h"
#include "stack/stack.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace magpie::stack {
namespace {

std::atomic<GuardKind> kind{GuardKind::advise};  // atomic, a hint: what to try first

// How many mappings our guards may still add. When the last one is gone even malloc fails, so the
// guards leave some for others.
constexpr std::ptrdiff_t kMappingsForOthers = 5'000;
constexpr std::ptrdiff_t kMappingsPerGuard = 2;
std::atomic<std::ptrdiff_t> mappings_left{65'530 - kMappingsForOthers};  // atomic, a count

void count_mappings() {
  std::ptrdiff_t most = 65'530;
  if (std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "re")) {
    if (std::fscanf(file, "%td", &most) != 1) most = 65'530;
    std::fclose(file);
  }
  mappings_left.store(most - kMappingsForOthers, std::memory_order_relaxed);
}

bool protect(std::byte* memory) { return mprotect(memory, guard_bytes(), PROT_NONE) == 0; }

bool protect_if_mappings_last(std::byte* memory) {
  return mappings_left.fetch_sub(kMappingsPerGuard, std::memory_order_relaxed) > 0 &&
         protect(memory);
}

// Whether advised guards fault. A successful call does not tell: emulators accept advice that they
// do not know, and ignore it. A system call that would map the guard's pages tells without a
// signal. It must not be a call that reads the guard as an argument: Valgrind reads it too, and
// dies.
bool advised_guards_fault() {
  void* memory =
      mmap(nullptr, guard_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  bool faults = madvise(memory, guard_bytes(), MADV_GUARD_INSTALL) == 0 &&
                madvise(memory, guard_bytes(), MADV_POPULATE_READ) != 0 && errno == EFAULT;
  munmap(memory, guard_bytes());
  return faults;
}

}  // namespace

std::size_t guard_bytes() {
  static const std::size_t bytes = std::max(page_size(), std::size_t{16 * 1024});
  return bytes;
}

GuardKind guard_kind() { return kind.load(std::memory_order_relaxed); }

void choose_guards() {
  const char* chosen = std::getenv("MAGPIE_GUARDS");
  std::string_view name = chosen == nullptr ? "advise" : chosen;
  GuardKind first;
  if (name == "advise") {
    first = advised_guards_fault() ? GuardKind::advise : GuardKind::protect;
  } else if (name == "protect") {
    first = GuardKind::protect;
  } else if (name == "shared") {
    first = GuardKind::shared;
  } else {
    throw std::invalid_argument("MAGPIE_GUARDS=" + std::string(name) +
                                " is unknown: use advise, protect or shared");
  }
  kind.store(first, std::memory_order_relaxed);
  count_mappings();
}

void install_guard(std::byte* memory) {
  if (guard_kind() == GuardKind::advise) {
    if (madvise(memory, guard_bytes(), MADV_GUARD_INSTALL) == 0) return;
    kind.store(GuardKind::protect, std::memory_order_relaxed);
  }
  if (guard_kind() == GuardKind::protect) {
    if (protect_if_mappings_last(memory)) return;
    kind.store(GuardKind::shared, std::memory_order_relaxed);
    base::warn(
        "no more guard pages: vm.max_map_count is nearly used up. From here on goroutines share "
        "guards, and a stack overflow may go unnoticed; raise vm.max_map_count or use Linux 6.13 "
        "or newer");
  }
}

void forget_guard() {
  if (guard_kind() != GuardKind::protect) return;
  mappings_left.fetch_add(kMappingsPerGuard, std::memory_order_relaxed);
}

void install_slab_guard(std::byte* memory) {
  if (guard_kind() == GuardKind::shared) protect(memory);  // the best that is left; may fail
}

}  // namespace magpie::stack
