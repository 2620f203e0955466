// next_slot.h: the goroutine that runs next on a P. The P's owner uses it at every turn, a thief
// once in a while.
//
// Protocol  [runnext]
//
//   owner:  owner_inside = true;  light_fence();  a thief inside? -> step aside;
//           read and write the slot;  owner_inside = false
//   thief:  compare-exchange thief_inside to true;  heavy_fence();  the owner inside? -> give up;
//           read and write the slot;  thief_inside = false
//
// Goal      The owner pays no locked instruction. A thief pays microseconds. It comes only after
//           the owner has not touched the slot for as long (steal.cc).
// No twice  Each side raises its flag and then reads the other's, with a full fence between
//           (base/fence.h). So at most one of them reads and writes. Thieves exclude each other by
//           the compare-exchange.
// Empty     Only the owner fills the slot. A thief that saw it filled stays inside until it has
//           emptied it. So an owner that sees the slot empty may fill it at once.
// Waiting   The owner waits while a thief is inside: a membarrier and a few instructions. The thief
//           never waits.
// Orders    [runnext] the slot: release to fill and to empty, acquire to steal. Flags: release when
//           lowered, acquire when found lowered.
// Proof     tests/model/run_queue_model.cc
#pragma once

#include <sched.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/fence.h"

namespace magpie::sched {

struct G;

class NextSlot {
 public:
  // Owner. False: the slot holds a goroutine.
  [[nodiscard]] bool put_if_empty(G* g) {
    if (slot_.load(base::relaxed) != nullptr) return false;  // relaxed: thieves only empty it
    slot_.store(g, base::release);  // [runnext] with peek's and steal's acquire
    return true;
  }

  // Owner. Puts g in, and returns the goroutine that was there, or null.
  [[nodiscard]] G* put(G* g) {
    G* before;
    while (!try_put(g, before)) wait_for_thief();
    return before;
  }

  // The same, but false if a thief is inside: then nothing has changed.
  [[nodiscard]] bool try_put(G* g, G*& before) {
    before = slot_.load(base::relaxed);  // relaxed: thieves only empty it
    if (before == nullptr) {
      slot_.store(g, base::release);  // [runnext] with peek's and steal's acquire
      return true;
    }
    if (!try_enter()) [[unlikely]]
      return false;
    // relaxed: we wrote it, or a thief emptied it and we saw that the thief went out
    before = slot_.load(base::relaxed);
    slot_.store(g, base::release);
    exit();
    return true;
  }

  // Owner. Null: the slot is empty.
  G* take() {
    if (slot_.load(base::relaxed) == nullptr) return nullptr;
    enter();
    G* g = slot_.load(base::relaxed);
    // release, with peek's acquire: an M that finds the slot empty also finds in the ring the
    // goroutine that was displaced from it
    slot_.store(nullptr, base::release);
    exit();
    return g;
  }

  // Owner. The same, but null also while a thief is inside. Calls nothing.
  G* try_take() {
    if (!try_enter()) [[unlikely]]
      return nullptr;
    G* g = slot_.load(base::relaxed);
    slot_.store(nullptr, base::release);  // as in take()
    exit();
    return g;
  }

  // Owner. Takes g out if it is there.
  bool take_if(G* g) {
    if (slot_.load(base::relaxed) != g) return false;
    enter();
    bool there = slot_.load(base::relaxed) == g;
    if (there) slot_.store(nullptr, base::release);
    exit();
    return there;
  }

  // Anyone. May be outdated by the time it is used.
  G* peek() const { return slot_.load(base::acquire); }

  // Thief. Takes g out if it is there and the owner is not inside.
  [[nodiscard]] bool steal(G* g) {
    bool nobody = false;
    if (!thief_inside_.compare_exchange_strong(nobody, true, base::acquire, base::relaxed))
      return false;
    base::heavy_fence();  // [runnext] other side: enter()
    bool mine = !owner_inside_.load(base::acquire) && slot_.load(base::acquire) == g;
    if (mine) slot_.store(nullptr, base::release);
    thief_inside_.store(false, base::release);
    return mine;
  }

 private:
  friend struct Layout;  // run/layout.h

  void enter() {
    while (!try_enter()) [[unlikely]] wait_for_thief();
  }
  bool try_enter() {
    owner_inside_.store(true, base::relaxed);  // relaxed: the fence orders it
    base::light_fence();                       // [runnext] other side: steal()
    if (!thief_inside_.load(base::acquire)) [[likely]]
      return true;
    exit();
    return false;
  }
  void exit() { owner_inside_.store(false, base::release); }

  [[gnu::noinline]] void wait_for_thief() {
    // The thief may have lost its CPU. Then the owner lets it have this one.
    for (int spin = 1; thief_inside_.load(base::acquire); ++spin) {
      base::cpu_relax();
      if (spin % 100 == 0) sched_yield();
    }
  }

  base::Atomic<G*> slot_{nullptr};          // atomic [runnext]
  base::Atomic<bool> owner_inside_{false};  // atomic [runnext]: the owner writes, thieves read
  base::Atomic<bool> thief_inside_{false};  // atomic [runnext]: thieves write, the owner reads
};

}  // namespace magpie::sched
