#include "poll/slot.h"

#include <sys/mman.h>

#include "base/guard.h"
#include "base/os.h"

namespace magpie::poll {

SlotTable::~SlotTable() {
  for (auto& chunk : chunks_) {
    if (Slot* slots = chunk.load(base::relaxed)) munmap(slots, kChunk * sizeof(Slot));
  }
}

Slot* SlotTable::take() {
  base::Guard hold(lock_);
  if (Slot* slot = free_) {
    free_ = slot->next_free;
    slot->begin();
    return slot;
  }
  std::uint32_t index = made_.load(base::relaxed);
  if (index == kChunk * kMostChunks) return nullptr;
  auto& chunk = chunks_[index / kChunk];
  if (index % kChunk == 0) {
    void* memory = base::os().map(nullptr, kChunk * sizeof(Slot), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    chunk.store(static_cast<Slot*>(memory), base::release);
  }
  Slot* slot = new (chunk.load(base::relaxed) + index % kChunk) Slot;
  slot->index = index;
  made_.store(index + 1, base::release);
  return slot;
}

void SlotTable::give(Slot* slot) {
  slot->end();  // [slot] before it is free
  base::Guard hold(lock_);
  slot->next_free = free_;
  free_ = slot;
}

Slot* SlotTable::find(Tag tag) const {
  if (tag.index >= made_.load(base::acquire)) return nullptr;
  Slot& slot = at(tag.index);
  return tag.is_of(slot) ? &slot : nullptr;
}

}  // namespace magpie::poll
