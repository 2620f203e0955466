// chunk_store.h: chunks of pointers to goroutines, from which the lines of the global queue are
// made.
//
// Taking a chunk never fails: the pools of records bring room for each record that they make. All
// chunks of a line but the first and the last are full, however small the batches: a push to the
// end fills the last one upwards, a push to the front fills the first one downwards. So it is
// enough to have room for all records, and some spare chunks for each shard.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "base/lock.h"

namespace magpie::sched {

struct G;

struct Chunk {
  static constexpr std::size_t kItems = 253;  // with the other fields: 2 KiB

  Chunk* next;
  std::int64_t since_ns;  // when it was begun (base::coarse_now_ns)
  std::uint32_t first;    // [first, end) are in the queue
  std::uint32_t end;
  G* items[kItems];
};

class ChunkStore {
 public:
  // Shards come here once for hundreds of goroutines.
  Chunk* take();
  void give(Chunk* chunk);

  // Bytes that make `records` more goroutines fit, whatever the order of pushes and pops; with the
  // spare chunks of one shard.
  static constexpr std::size_t bytes_of_room(std::size_t records) {
    return (records / Chunk::kItems + kSpareChunks) * sizeof(Chunk);
  }
  void add_room(std::byte* memory, std::size_t bytes);

 private:
  static constexpr std::size_t kSpareChunks = 8;

  struct Piece {
    Piece* next;
    std::byte* end;
  };

  base::Lock lock_;
  Chunk* free_ MAGPIE_GUARDED_BY(lock_) = nullptr;  // used before: warm
  // Never used: cold, in pieces linked through their first word.
  std::byte* room_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  std::byte* room_end_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  Piece* pieces_ MAGPIE_GUARDED_BY(lock_) = nullptr;
};

}  // namespace magpie::sched
