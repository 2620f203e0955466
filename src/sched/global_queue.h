// global_queue.h: the unbounded queue that all Ps share: spilled halves of rings, goroutines started or readied by
// plain threads, the queues of removed Ps.
//
//   head chunk [..taken..|g g g g] -> [g g g g g] -> tail chunk [g g g|..free..]
//
// A lock and a list of chunks of pointers: Ps come here once in 61 ticks, once per 128 spilled goroutines, or
// when they have nothing else. No goroutine's record is touched under the lock. The size can be read without
// it, so that an empty queue costs one load.
// Pushing never fails: the pool of records brings room for each record it makes (add_room).
#pragma once

#include <cstddef>
#include <span>

#include "base/atomic.h"
#include "base/lock.h"
#include "sched/g.h"

namespace magpie::sched {

class GlobalQueue {
 public:
  // Relaxed: a late answer is caught by [search-or-sleep], whose fences order this load too.
  std::size_t size() const { return size_.load(base::relaxed); }
  bool empty() const { return size() == 0; }

  void push(G* g) { push(std::span<G* const>(&g, 1)); }
  void push(std::span<G* const> batch);

  // Before what is there: these have waited longest.
  void push_front(std::span<G* const> batch);

  // The oldest, or null.
  G* pop();

  // A fair share for one of `procs`, the oldest first; returns how many were written to `out`.
  std::size_t pop_share(std::size_t procs, std::span<G*> out);

  // Bytes of memory that make `records` more goroutines fit, whatever the order of pushes and pops.
  static std::size_t bytes_of_room(std::size_t records);
  void add_room(std::byte* memory, std::size_t bytes);

 private:
  static constexpr std::size_t kChunk = 254;  // with the link and the two marks: 2 KiB

  struct Chunk {
    Chunk* next;
    std::uint32_t first;  // [first, end) are in the queue
    std::uint32_t end;
    G* items[kChunk];
  };

  Chunk* new_chunk_locked();
  std::size_t pop_locked(std::span<G*> out);

  base::Lock lock_;
  // guarded by lock_
  Chunk* head_ = nullptr;
  Chunk* tail_ = nullptr;
  Chunk* free_ = nullptr;      // used before: warm
  std::byte* room_ = nullptr;  // never used: cold, in pieces linked through their first word
  std::byte* room_end_ = nullptr;
  struct Piece {
    Piece* next;
    std::byte* end;
  };
  Piece* pieces_ = nullptr;
  base::Atomic<std::size_t> size_{0};  // atomic: written under lock_, read by anyone
};

}  // namespace magpie::sched
