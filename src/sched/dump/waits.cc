#include "sched/dump/waits.h"

#include <algorithm>

#include "sched/dump/fault_guard.h"

namespace magpie::sched {

void WaitGraph::add(const Wait& wait, Arena& arena) {
  if (count_ == room_) {
    std::size_t room = room_ == 0 ? 1024 : 2 * room_;
    Wait* larger = arena.make<Wait>(room);
    if (larger == nullptr) return;
    std::copy_n(waits_, count_, larger);
    waits_ = larger;
    room_ = room;
  }
  waits_[count_++] = wait;
}

void WaitGraph::resolve(const CarvedRecords& records) {
  find_owners(records);
  std::sort(waits_, waits_ + count_, [](const Wait& a, const Wait& b) { return a.id < b.id; });
  find_cycles();
}

namespace {

struct Range {
  const G* g;
  std::uintptr_t low = 0, high = 0;
  std::uint64_t id = 0;
};

// The record of the stack lies in the stack, which may be unmapped meanwhile.
[[MAGPIE_READS_RACILY]] void read_range(void* its) {
  auto& range = *static_cast<Range*>(its);
  const stack::Stack* stack = range.g->stack;
  if (stack == nullptr) return;
  range.low = reinterpret_cast<std::uintptr_t>(stack->low);
  range.id = range.g->id;
  range.high = reinterpret_cast<std::uintptr_t>(stack);
}

}  // namespace

void WaitGraph::find_owners(const CarvedRecords& records) {
  std::sort(waits_, waits_ + count_,
            [](const Wait& a, const Wait& b) { return a.owner_at < b.owner_at; });
  if (count_ == 0 || waits_[count_ - 1].owner_at == 0) return;
  records.for_each([this](G* g) {
    GState state = g->state.load(base::relaxed);
    bool has_stack =
        state == GState::running || state == GState::runnable || state == GState::waiting;
    // The goroutine that it runs in place is on the same stack, and deeper.
    if (!has_stack || (state == GState::waiting && g->reason() == WaitReason::join_in_place))
      return;
    Range range{g};
    if (!survives(read_range, &range) || range.low == 0) return;
    Wait* at =
        std::lower_bound(waits_, waits_ + count_, range.low,
                         [](const Wait& wait, std::uintptr_t low) { return wait.owner_at < low; });
    for (; at != waits_ + count_ && at->owner_at < range.high; ++at) at->owner = range.id;
  });
}

const WaitGraph::Wait* WaitGraph::find(std::uint64_t id) const {
  if (id == 0) return nullptr;
  const Wait* at =
      std::lower_bound(waits_, waits_ + count_, id,
                       [](const Wait& wait, std::uint64_t wanted) { return wait.id < wanted; });
  return at != end() && at->id == id ? at : nullptr;
}

// Each goroutine waits for one other at most. So from each there is one path: it ends, or meets
// itself, or meets a path that was walked before.
void WaitGraph::find_cycles() {
  std::size_t chain = 0;
  for (Wait* start = waits_; start != waits_ + count_; ++start) {
    if (start->chain != 0) continue;
    ++chain;
    Wait* at = start;
    while (at != nullptr && at->chain == 0) {
      at->chain = chain;
      at = const_cast<Wait*>(find(at->owner));
    }
    if (at != nullptr && at->chain == chain) {
      has_cycles_ = true;
      for (Wait* in = at; !in->in_cycle; in = const_cast<Wait*>(find(in->owner)))
        in->in_cycle = in->stuck = true;
    }
    if (at == nullptr || !at->stuck) continue;
    for (Wait* behind = start; !behind->stuck; behind = const_cast<Wait*>(find(behind->owner))) {
      behind->stuck = true;
      ++stuck_behind_;
    }
  }
}

bool WaitGraph::is_least_of_its_cycle(const Wait& wait) const {
  for (const Wait* at = find(wait.owner); at != nullptr && at != &wait; at = find(at->owner)) {
    if (at->id < wait.id) return false;
  }
  return true;
}

}  // namespace magpie::sched
