// global_queue.h: the unbounded queue that all Ps share, in three lines:
//
//   usual    spilled halves of rings, goroutines started by plain threads, the queues of removed Ps
//   urgent   goroutines that were woken while no M could run them: by plain threads, by the
//            network, or back from a blocking call
//   stopped  goroutines that were preempted, each bound to its thread
//
//   each: head chunk [..taken..|g g g g] -> [g g g g g] -> tail chunk [g g g|..free..]
//
// No line is ahead of another: a P takes its share from each line, the oldest first. "Urgent" only
// means that a goroutine does not stand behind the usual ones, of which there may be a million.
// How large a share is, and how long a goroutine waits: docs/fairness.md.
//
// A lock and a list of chunks of pointers: Ps come here once in 61 ticks, once per 128 spilled
// goroutines, or when they have nothing else. No goroutine's record is touched under the lock, but
// for take_bound(). The size can be read without it, so that an empty queue costs one load.
// Pushing never fails: the pool of records brings room for each record it makes (add_room).
#pragma once

#include <cstddef>
#include <span>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "sched/core/g.h"

namespace magpie::sched {

class GlobalQueue {
 public:
  // Relaxed: a late answer is caught by [search-or-sleep], whose fences order this load too.
  std::size_t size() const { return size_.load(base::relaxed); }
  bool empty() const { return size() == 0; }

  void push(G* g) { push(std::span<G* const>(&g, 1)); }
  void push(std::span<G* const> batch) { push(usual_, batch); }
  void push_urgent(G* g) { push(urgent_, {&g, 1}); }
  void push_stopped(G* g) { push(stopped_, {&g, 1}); }

  // Before what is there: these have waited longest.
  void push_front(std::span<G* const> batch) { push_front(usual_, batch); }
  void push_urgent_front(G* g) { push_front(urgent_, {&g, 1}); }
  void push_stopped_front(G* g) { push_front(stopped_, {&g, 1}); }

  // The oldest of the urgent or the usual line, or null; the two take turns.
  G* pop();
  // The oldest of the stopped line, or null. No admit() for it: see [claim].
  G* pop_stopped();

  // A goroutine of the urgent or usual line that is bound to a thread which waits with it; or null.
  // For Ps that get no other thread. It looks at every goroutine, and there may be a million: ask
  // only if Runtime::bound is not 0.
  G* take_bound();

  // Relaxed: for sysmon, which comes again.
  std::size_t urgent() const { return urgent_.size.load(base::relaxed); }
  std::size_t stopped() const { return stopped_.size.load(base::relaxed); }

  // For a P, one of `procs`, that has nothing else: a fair share of the urgent line, then of the
  // usual one; returns how many were written to `out`.
  std::size_t pop_share(std::size_t procs, std::span<G*> out);

  // From the front of the usual line.
  std::size_t pop_usual(std::span<G*> out);

  // As pop_share() for a P that has goroutines of its own. It takes only one of the usual line,
  // unless that line has stood still for long: it holds what rings could not, and running that
  // first would make ever more.
  std::size_t pop_few(std::size_t procs, std::span<G*> out);

  // Bytes of memory that make `records` more goroutines fit, whatever the order of pushes and pops.
  static std::size_t bytes_of_room(std::size_t records);
  void add_room(std::byte* memory, std::size_t bytes);

 private:
  friend struct Layout;  // run/layout.h

  static constexpr std::size_t kChunk = 253;  // with the link, the time and the two marks: 2 KiB

  struct Chunk {
    Chunk* next;
    std::int64_t since_ns;  // when it was begun (base::coarse_now_ns)
    std::uint32_t first;    // [first, end) are in the queue
    std::uint32_t end;
    G* items[kChunk];
  };

  struct Line {
    Chunk* head = nullptr;
    Chunk* tail = nullptr;
    base::Atomic<std::size_t> size{0};  // atomic, written under lock_: read by anyone
  };

  enum class Usual { share, spared };  // of the usual line: see pop_share() and pop_few()

  Chunk* new_chunk_locked() MAGPIE_REQUIRES(lock_);
  std::size_t pop_from_both(std::size_t procs, std::span<G*> out, Usual how);
  void push(Line& line, std::span<G* const> batch);
  void push_front(Line& line, std::span<G* const> batch);
  std::size_t pop_locked(Line& line, std::span<G*> out) MAGPIE_REQUIRES(lock_);
  static std::size_t share_of(const Line& line, std::size_t procs);
  bool bring_bound_to_front_locked(Line& line) MAGPIE_REQUIRES(lock_);
  void change_size_locked(Line& line, std::size_t by) MAGPIE_REQUIRES(lock_);

  base::Lock lock_;
  // Guarded by lock_, but for the sizes: so Clang looks only at the functions that go through
  // lines.
  Line usual_, urgent_, stopped_;
  std::uint32_t turn_ MAGPIE_GUARDED_BY(lock_) = 0;  // of the lines, for pop()
  Chunk* free_ MAGPIE_GUARDED_BY(lock_) = nullptr;   // used before: warm
  // Never used: cold, in pieces linked through their first word.
  std::byte* room_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  std::byte* room_end_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  struct Piece {
    Piece* next;
    std::byte* end;
  };
  Piece* pieces_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  base::Atomic<std::size_t> size_{0};  // atomic, written under lock_: read by anyone
};

}  // namespace magpie::sched
