#include "stack/stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "base/os.h"
#include "stack/guard.h"

namespace magpie::stack {
namespace {

// The record sits at the end of the memory, rounded to whole cache lines.
constexpr std::size_t kRecordBytes = (sizeof(Stack) + 63) / 64 * 64;

}  // namespace

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t minimum_size() { return guard_bytes() + std::max(page_size(), std::size_t{16 * 1024}); }

void check_size(std::size_t size) {
  if (size < minimum_size()) {
    throw std::invalid_argument("stack_size " + std::to_string(size) + " is too small: at least " +
                                std::to_string(minimum_size()) + " bytes are needed");
  }
  if (std::size_t page = page_size(); size % page != 0) {
    throw std::invalid_argument("stack_size " + std::to_string(size) +
                                " is not a multiple of the page size: use " +
                                std::to_string((size / page + 1) * page));
  }
  if (size > std::size_t{1} << 40) {
    throw std::invalid_argument("stack_size " + std::to_string(size) + " is more than 1 TiB");
  }
}

std::size_t distance_of(std::size_t size) { return size + page_size(); }

std::size_t Stack::size() const { return guard_bytes() + usable() + kRecordBytes; }

bool Stack::in_guard(const void* address) const {
  auto* byte = static_cast<const std::byte*>(address);
  return byte < low && byte >= low - guard_bytes();
}

Stack* construct(std::byte* memory, std::size_t size) {
  std::byte* low = memory + guard_bytes();
  std::byte* record = memory + size - kRecordBytes;
  std::size_t colour = reinterpret_cast<std::uintptr_t>(low) / distance_of(size) % kColours;
  auto* stack = new (record)
      Stack{.low = low, .first_frame = record - colour * kColourStep, .pooled = true, .fiber = {}};
  base::open_fiber(stack->fiber, low, stack->usable());
  return stack;
}

Stack* map_single(std::size_t size) {
  void* memory = base::os().map(nullptr, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, size, MADV_NOHUGEPAGE);
  install_guard(static_cast<std::byte*>(memory));
  Stack* stack = construct(static_cast<std::byte*>(memory), size);
  stack->pooled = false;
  return stack;
}

void unmap_single(Stack* stack) {
  base::close_fiber(stack->fiber);
  base::forget_memory(stack->low, stack->usable());
  munmap(stack->low - guard_bytes(), stack->size());
  forget_guard();
}

}  // namespace magpie::stack
