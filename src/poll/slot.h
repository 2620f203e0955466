// slot.h: what events are delivered to. One for each registered descriptor, never freed while the table lives, so that an
// event which comes late finds a slot: its own, or, with another generation, somebody else's.
#pragma once

#include <cstdint>
#include <mutex>
#include <new>

#include "base/atomic.h"
#include "base/lock.h"
#include "poll/readiness.h"

namespace magpie::poll {

struct alignas(base::kCacheLine) Slot {
  Readiness read, write;  // [readiness]
  // atomic: the poller sets it before it sets `read`, which orders it: the peer has ended, an error is pending, or there was
  // urgent data, at which reads stop early. From then on a short read does not mean that nothing is left
  base::Atomic<bool> always_try{false};
  base::Atomic<std::uint32_t> generation{0};  // atomic: relaxed, a wrong guess is a spurious event

  // fixed
  std::uint32_t index = 0;
  // guarded by the table's lock
  Slot* next_free = nullptr;
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
  // guarded by lock_
  Slot* free_ = nullptr;
  // atomic: written under lock_ and before an index beyond is known; release, with at()
  base::Atomic<Slot*> chunks_[kMostChunks] = {};
  base::Atomic<std::uint32_t> made_{0};  // atomic: written under lock_; release, with any()
};

}  // namespace magpie::poll
