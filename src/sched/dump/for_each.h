// for_each.h: looks at every goroutine without keeping anybody waiting.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sched/dump/arena.h"
#include "sched/entry.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

// Every record that was carved before list(), also free ones. Records change meanwhile.
//
// Only list() enters the runtime. When run() ends, a goroutine that enters does not come back: it
// must not hold a lock there that a later dump needs.
class CarvedRecords {
 public:
  // The caller holds no lock.
  void list(Arena& arena) {
    for (std::uint32_t node = 0; node < runtime->records.count(); ++node)
      if (!list(node, arena)) return;
  }

  // Calls f(g) outside the runtime: the caller may be stopped, and takes its time.
  template <class F>
  void for_each(F f) const {
    for (std::size_t i = 0; i < count_; ++i) {
      for (G& g : slabs_[i]) f(&g);
    }
  }

 private:
  // Those of a node. False: there is no memory.
  bool list(std::uint32_t node, Arena& arena) {
    for (std::size_t slab = 0;; ++slab) {
      if (count_ == room_ && !grow(arena)) return false;
      Entry entry;
      std::span<G> records = runtime->records.of(node).carved_in(slab);
      if (records.empty()) return true;
      slabs_[count_++] = records;
    }
  }

  bool grow(Arena& arena) {
    std::size_t room = room_ == 0 ? 64 : 2 * room_;
    auto* larger = arena.make<std::span<G>>(room);
    if (larger == nullptr) return false;
    std::copy_n(slabs_, count_, larger);
    slabs_ = larger;
    room_ = room;
    return true;
  }

  std::span<G>* slabs_ = nullptr;
  std::size_t count_ = 0;
  std::size_t room_ = 0;
};

}  // namespace magpie::sched
