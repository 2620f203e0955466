// slot.h: events are delivered to slots. Each registered descriptor has one. Slots are never freed
// while the table lives. So a late event finds a slot: its own, or another owner's, with another
// generation.
//
// Protocol  [slot]
//
//   owner:       takes a free slot;  begin(): nothing is known
//                tells the kernel the descriptor and its tag
//   owner, done: takes the descriptor off the kernel's list
//                end(): the next generation;  gives the slot back
//   poller:      gets an event with a tag
//                is the slot of that generation?  -> sets its words ([readiness])
//
// No loss   The generation changes before the slot can be taken again, and begin() runs before the
//           kernel hears of the new owner. So an event of the present owner finds its generation,
//           and begin() does not wipe out what it says.
// Late      The poller may find an event's slot before the generation changes. Then it sets the
//           words of the next owner. That is spurious, and costs the next owner a system call.
// Orders    [slot] relaxed: the table's lock and the kernel order what has to be ordered. A wrong
//           guess is a late event.
// Proof     tests/model/descriptor_model.cc
#pragma once

#include <cstdint>
#include <new>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "poll/readiness.h"

namespace magpie::poll {

struct alignas(base::kCacheLine) Slot {
  Readiness read, write;  // [readiness]
  // atomic [readiness]: the poller sets it before it sets `read`, which orders it. The peer has
  // ended, an error is pending, or there was urgent data, at which reads stop early. From then on a
  // short read does not mean that nothing is left. A late event may set it too often, which costs
  // system calls
  base::Atomic<bool> always_try{false};
  base::Atomic<std::uint32_t> generation{0};  // atomic [slot]: its owner writes, the poller reads

  // fixed
  std::uint32_t index = 0;
  // guarded by the table's lock
  Slot* next_free = nullptr;

  // A new owner calls this before the kernel hears of it.
  void begin() {
    read.reset();
    write.reset();
    always_try.store(false, base::relaxed);
  }
  // The owner calls this before the slot can be taken again. Events that are on their way find no
  // owner.
  void end() { generation.store(generation.load(base::relaxed) + 1, base::relaxed); }
};

// What an event carries.
struct Tag {
  std::uint32_t index;
  std::uint32_t generation;

  std::uint64_t packed() const { return std::uint64_t{generation} << 32 | index; }
  static Tag of(std::uint64_t packed) {
    return {static_cast<std::uint32_t>(packed), static_cast<std::uint32_t>(packed >> 32)};
  }
  static Tag of(const Slot& slot) { return {slot.index, slot.generation.load(base::relaxed)}; }
  bool is_of(const Slot& slot) const { return slot.generation.load(base::relaxed) == generation; }
};

class SlotTable {
 public:
  SlotTable() = default;
  ~SlotTable();
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  // Null: no memory, or there are two million already.
  Slot* take();
  // Events that are on their way find no owner.
  void give(Slot* slot);

  // Null: the slot has been given back.
  Slot* find(Tag tag) const;

  // Calls f for each slot that was ever in use. f returns true to stop.
  template <class F>
  bool any(F f) const {
    std::uint32_t made = made_.load(base::acquire);
    for (std::uint32_t i = 0; i < made; ++i) {
      if (f(at(i))) return true;
    }
    return false;
  }

 private:
  static constexpr std::uint32_t kChunk = 1024;
  static constexpr std::uint32_t kMostChunks = 2048;

  Slot& at(std::uint32_t index) const {
    return chunks_[index / kChunk].load(base::acquire)[index % kChunk];
  }

  base::Lock lock_;
  Slot* free_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  // As in [grown-table]: a chunk is there before the count says so, and readers read the count
  // first. Written under lock_
  base::Atomic<Slot*> chunks_[kMostChunks] = {};  // atomic [grown-table]
  base::Atomic<std::uint32_t> made_{0};           // atomic [grown-table]
};

}  // namespace magpie::poll
