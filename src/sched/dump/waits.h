// waits.h: which goroutine waits for which: a Mutex that the other holds, or the other's end.
//
// The owner of a Mutex is found by the place of its stack when it took the mutex (magpie/mutex.h):
// the goroutine whose stack that is. If that goroutine has ended without unlocking, the next
// goroutine on the same stack is named.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sched/core/g.h"
#include "sched/dump/arena.h"
#include "sched/dump/for_each.h"

namespace magpie::sched {

class WaitGraph {
 public:
  struct Wait {
    std::uint64_t id;  // waits
    WaitReason reason;
    const void* object;
    std::uintptr_t owner_at;  // a place in the stack of the owner; 0: the owner is known already
    std::uint64_t owner;      // 0: none of the goroutines
    std::size_t chain;        // for the search
    bool in_cycle, stuck;
  };

  // Returns false if there is no memory.
  void add(const Wait& wait, Arena& arena);
  // Finds the owners, then the cycles. Reads all goroutines once more.
  void resolve(const CarvedRecords& records);

  // Null: g does not wait for a goroutine that is known.
  const Wait* find(std::uint64_t id) const;

  const Wait* begin() const { return waits_; }
  const Wait* end() const { return waits_ + count_; }

  // Calls f(wait) for each in each cycle; f(nullptr) after each cycle.
  template <class F>
  void for_each_in_cycles(F f) const {
    for (const Wait* wait = begin(); wait != end(); ++wait) {
      if (!wait->in_cycle || !is_least_of_its_cycle(*wait)) continue;
      const Wait* at = wait;
      do {
        f(at);
        at = find(at->owner);
      } while (at != nullptr && at != wait);
      f(nullptr);
    }
  }
  bool has_cycles() const { return has_cycles_; }
  // Not in a cycle, but waiting for goroutines of one.
  std::size_t stuck_behind() const { return stuck_behind_; }

 private:
  bool is_least_of_its_cycle(const Wait& wait) const;
  void find_owners(const CarvedRecords& records);
  void find_cycles();

  Wait* waits_ = nullptr;
  std::size_t count_ = 0;
  std::size_t room_ = 0;
  bool has_cycles_ = false;
  std::size_t stuck_behind_ = 0;
};

}  // namespace magpie::sched
