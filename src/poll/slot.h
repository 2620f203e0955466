// slot.h: what events are delivered to. One for each registered descriptor, never freed while the table lives, so that an
// event which comes late finds a slot: its own, or, with another generation, somebody else's.
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
// No loss   The generation changes before the slot can be taken again, and nothing is known before
//           the kernel hears of the new owner. So an event of the present owner finds its
//           generation, and what it says is not wiped out.
// Late      An event whose slot was found before the generation changed sets the words of the next
//           owner. That is spurious, and costs that one a system call.
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
  // atomic [readiness]: the poller sets it before it sets `read`, which orders it: the peer has ended, an error is pending, or
  // there was urgent data, at which reads stop early. From then on a short read does not mean that nothing is left. Too often
  // true, by a late event, costs system calls
  base::Atomic<bool> always_try{false};
  base::Atomic<std::uint32_t> generation{0};  // atomic [slot]: its owner writes, the poller reads

  // fixed
  std::uint32_t index = 0;
  // guarded by the table's lock
  Slot* next_free = nullptr;

  // By a new owner, before the kernel hears of it.
  void begin() {
    read.reset();
    write.reset();
    always_try.store(false, base::relaxed);
  }
  // By its owner, before it can be taken again. Events that are on their way are for nobody.
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
  // Events that are on their way are for nobody.
  void give(Slot* slot);

  // Null: it has been given back.
  Slot* find(Tag tag) const;

  // Those that were ever in use. f returns true to stop.
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
  // As in [grown-table]: a chunk is there before the count says so, and the count is read first.
  // Written under lock_
  base::Atomic<Slot*> chunks_[kMostChunks] = {};  // atomic [grown-table]
  base::Atomic<std::uint32_t> made_{0};           // atomic [grown-table]
};

}  // namespace magpie::poll
