// shard.h: the part of the global queue that belongs to one node, in three lines:
//
//   usual    spilled halves of rings, goroutines started by plain threads, the queues of removed Ps
//   urgent   goroutines that were woken while no M could run them: by plain threads, by the
//            network, or back from a blocking call
//   stopped  goroutines that were preempted, each bound to its thread; in the first shard only
//
//   each: head chunk [..taken..|g g g g] -> [g g g g g] -> tail chunk [g g g|..free..]
//
// A lock and lists of chunks of pointers: Ps come here once in 61 ticks, once per 128 spilled
// goroutines, or when they have nothing else. No goroutine's record is touched under the lock, but
// for take_bound(), and for push_front() once that was called. The sizes can be read without it, so
// that an empty queue costs one load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/cpu.h"
#include "base/lock.h"
#include "sched/core/chunk_store.h"
#include "sched/core/g.h"

namespace magpie::sched {

class alignas(base::kCacheLine) Shard {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // Before it is used.
  void set_store(ChunkStore& store) { store_ = &store; }

  // Relaxed: a late answer is caught by [search-or-sleep], whose fences order this load too.
  std::size_t size() const { return size_.load(base::relaxed); }
  bool empty() const { return size() == 0; }
  std::size_t urgent() const { return urgent_.size.load(base::relaxed); }
  std::size_t stopped() const { return stopped_.size.load(base::relaxed); }

  // When the oldest of a line became ready, about; kNever: the line is empty. All of one chunk
  // count as equally old.
  std::int64_t oldest_urgent_ns() const { return urgent_.oldest_ns.load(base::relaxed); }
  std::int64_t oldest_usual_ns() const { return usual_.oldest_ns.load(base::relaxed); }

  void push(std::span<G* const> batch) { push(usual_, batch); }
  void push_urgent(G* g) { push(urgent_, {&g, 1}); }
  void push_stopped(G* g) { push(stopped_, {&g, 1}); }

  // Before what is there: these have waited longest.
  void push_front(std::span<G* const> batch) { push_front(usual_, batch); }
  void push_urgent_front(G* g) { push_front(urgent_, {&g, 1}); }
  void push_stopped_front(G* g) { push_front(stopped_, {&g, 1}); }

  // The oldest of the urgent or the usual line, or null; the two take turns.
  G* pop();
  // The oldest of the stopped line, or null.
  G* pop_stopped();
  // One that is bound, of the urgent or the usual line; or null. Each look touches a record under
  // the lock. So a call looks at no more than kLooksForBound that no call has looked at before.
  G* take_bound();
  // All are looked at again, see GlobalQueue.
  void look_at_all_again();

  // For a P, one of `procs`: a fair share of the urgent line, then of the usual one. Of the usual
  // line one only if the taker spares it, and the line has not stood still for long. Returns how
  // many were written to `out`.
  enum class Usual { share, spared, none };
  std::size_t pop_from_both(std::size_t procs, std::span<G*> out, Usual how);
  std::size_t pop_usual_share(std::size_t procs, std::span<G*> out, Usual how);

  // From the front of the usual line.
  std::size_t pop_usual(std::span<G*> out);

 private:
  friend struct Layout;  // run/layout.h

  // Spare chunks for each shard (chunk_store.h): two for each line that are not full, and these.
  static constexpr std::uint32_t kKeptChunks = 2;

  static constexpr std::size_t kLooksForBound = 16'384;

  struct Line {
    Chunk* head = nullptr;
    Chunk* tail = nullptr;
    base::Atomic<std::size_t> size{0};             // atomic, written under lock_: read by anyone
    base::Atomic<std::int64_t> oldest_ns{kNever};  // atomic, written under lock_: read by anyone
    // take_bound() has looked at everything before this place of this chunk, and nothing there is
    // bound. A goroutine in a queue stays bound, or not. Null: it has looked at nothing.
    Chunk* looked_in = nullptr;
    std::uint32_t looked_to = 0;
  };

  Chunk* new_chunk_locked() MAGPIE_REQUIRES(lock_);
  void drop_chunk_locked(Chunk* chunk) MAGPIE_REQUIRES(lock_);
  void push(Line& line, std::span<G* const> batch);
  void push_front(Line& line, std::span<G* const> batch);
  std::size_t pop_locked(Line& line, std::span<G*> out) MAGPIE_REQUIRES(lock_);
  std::size_t pop_usual_share_locked(std::size_t procs, std::span<G*> out, Usual how)
      MAGPIE_REQUIRES(lock_);
  static std::size_t share_of(const Line& line, std::size_t procs);
  bool bring_bound_to_front_locked(Line& line, std::size_t& looks) MAGPIE_REQUIRES(lock_);
  void change_size_locked(Line& line, std::size_t by) MAGPIE_REQUIRES(lock_);

  base::Lock lock_;
  // Guarded by lock_, but for the sizes and times: so Clang looks only at the functions that go
  // through lines.
  Line usual_, urgent_, stopped_;
  std::uint32_t pops_ MAGPIE_GUARDED_BY(lock_) = 0;  // tells pop() which line comes first
  std::uint32_t kept_ MAGPIE_GUARDED_BY(lock_) = 0;  // how many are in free_
  Chunk* free_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  base::Atomic<std::size_t> size_{0};  // atomic, written under lock_: read by anyone
  ChunkStore* store_ = nullptr;        // fixed before it is used
};

}  // namespace magpie::sched
