// global_queue.h: the unbounded queue that all Ps share: a shard for each node, of three lines
// (shard.h).
//
// No line is ahead of another: a P takes its share from each line, the oldest first. "Urgent" only
// means that a goroutine does not stand behind the usual ones, of which there may be a million.
// How large a share is, and how long a goroutine waits: docs/fairness.md.
//
//   push    Ps spill to the shard of their node. A goroutine that a thread without a P puts here
//           goes to the shard of the node that its record is from.
//   pop     A P takes from the shard of its node, for each line by itself. It takes from another
//           shard if its own is empty there, or if the oldest goroutine of the other shard became
//           ready policy::kShardLeadNs earlier. So all Ps look at all shards, and the order between
//           shards is that of time, but for the lead. No shard needs Ps of its own.
//   stopped One line, in the first shard: their threads are where they are.
//
// There are only more shards as time goes on. So a thread that still pushes to a shard whose node
// has gone loses nothing. With one node there is one shard, and nothing to choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/atomic.h"
#include "base/page_array.h"
#include "sched/core/chunk_store.h"
#include "sched/core/g.h"
#include "sched/core/shard.h"

namespace magpie::sched {

class GlobalQueue {
 public:
  GlobalQueue();

  // Makes shards for nodes 0 to `nodes` - 1. By the thread that has the right to stop the world.
  // False: there is no memory.
  [[nodiscard]] bool add_shards(std::uint32_t nodes);

  // Late answers: see Shard::size().
  std::size_t size() const;
  bool empty() const { return shards_[0].empty() && (is_alone() || others_are_empty()); }
  // For hints.
  std::size_t urgent() const;
  std::size_t stopped() const { return shards_[0].stopped(); }

  // By threads without a P.
  void push(G* g) { home_of(g).push({&g, 1}); }
  void push_urgent(G* g) { home_of(g).push_urgent(g); }
  void push_stopped(G* g) { shards_[0].push_stopped(g); }
  // Before what is there: they have waited longest.
  void push_urgent_front(G* g) { home_of(g).push_urgent_front(g); }
  void push_stopped_front(G* g) { shards_[0].push_stopped_front(g); }

  // Of a P of this node.
  void push(std::uint32_t node, std::span<G* const> batch) { shards_[node].push(batch); }
  void push_front(std::uint32_t node, std::span<G* const> batch) {
    shards_[node].push_front(batch);
  }

  // The oldest of the urgent or the usual line, or null; the two take turns.
  G* pop(std::uint32_t node) { return empty() ? nullptr : pop_slow(node); }
  // The oldest of the stopped line, or null. No admit() for it: see [claim].
  G* pop_stopped() { return stopped() == 0 ? nullptr : shards_[0].pop_stopped(); }

  // A goroutine of the urgent or usual line that is bound to a thread which waits with it; or null.
  // For Ps that get no other thread. There may be a million goroutines, and a call looks only at
  // some of those that no call has looked at before: call again. Ask only if Runtime::bound is not
  // 0.
  G* take_bound();
  // An entry that take_bound() returned was left behind by a joiner. The goroutine may have another
  // entry, which was looked at before it was bound: all are looked at again.
  void look_at_all_again();

  // A P of this node. How many Ps share a shard: those of the node, or all if it is another's.
  struct Taker {
    std::uint32_t node, procs_of_node, procs;
  };

  // For a P that has nothing else: a fair share of the urgent line, then of the usual one; returns
  // how many were written to `out`.
  std::size_t pop_share(Taker taker, std::span<G*> out) {
    return pop_from_both(taker, out, Shard::Usual::share);
  }

  // As pop_share() for a P that has goroutines of its own. It takes only one of the usual line,
  // unless that line has stood still for long: it holds what rings could not, and running that
  // first would make ever more.
  std::size_t pop_few(Taker taker, std::span<G*> out) {
    return pop_from_both(taker, out, Shard::Usual::spared);
  }

  // From the front of the usual line of this node.
  std::size_t pop_usual(std::uint32_t node, std::span<G*> out) {
    return shards_[node].pop_usual(out);
  }

  ChunkStore& chunks() { return chunks_; }

 private:
  friend struct Layout;  // run/layout.h

  bool is_alone() const { return shard_count() == 1; }
  std::uint32_t shard_count() const { return shard_count_.load(base::relaxed); }
  Shard& home_of(const G* g) { return shards_[g->node]; }
  bool others_are_empty() const;
  G* pop_slow(std::uint32_t node);
  template <class OldestNs>
  std::uint32_t first_for(std::uint32_t node, OldestNs oldest_ns) const;
  std::size_t pop_from_both(Taker taker, std::span<G*> out, Shard::Usual how);

  // atomic, a hint: grows with the world going on. What is in a new shard was put there by an M or
  // a plain thread that learnt of it by a stop of the world, or has its goroutine from such an M.
  base::Atomic<std::uint32_t> shard_count_{1};
  Shard shards_[kMostNodes];
  ChunkStore chunks_;
  base::PageArray<std::byte> spare_chunks_[kMostNodes];  // of all shards but the first
};

}  // namespace magpie::sched
