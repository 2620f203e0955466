#include "sched/wait_object.h"

#include "sched/core/g.h"
#include "sched/dump/fault_guard.h"
#include "sched/waiter.h"

namespace magpie::sched {

[[MAGPIE_READS_RACILY]] const void* wait_object_of(const G& g) {
  WaitReason reason = g.reason();
  if (reason == WaitReason::sleep || reason == WaitReason::join_in_place || g.bound) return nullptr;
  const stack::Stack* stack = g.stack;
  if (stack == nullptr) return nullptr;  // it ends at this moment
  auto sp = reinterpret_cast<std::uintptr_t>(g.saved_sp);
  auto top = reinterpret_cast<std::uintptr_t>(stack->top());
  std::uintptr_t at = (sp & ~std::uintptr_t{0xffff}) | g.wait_record;
  if (at < sp) at += 0x10000;
  auto is_on_stack = [&](std::uintptr_t place) {
    return place >= sp && place < top && place % sizeof(void*) == 0;
  };
  if (!is_on_stack(at)) return nullptr;
  std::uintptr_t word = *reinterpret_cast<std::uintptr_t*>(at);
  if (is_on_stack(word)) {
    // Not through Waiter's functions: they are checked for races and may be instrumented.
    auto* words = reinterpret_cast<std::uintptr_t*>(word + Waiter::kObjectOffset);
    word = *words;
  }
  return reinterpret_cast<const void*>(word);
}

}  // namespace magpie::sched
