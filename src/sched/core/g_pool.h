// g_pool.h: memory for goroutine records.
//
//    P's free records (no lock) <--batches of pointers--> GPool: free records <-- carved from slabs
//
// There is a pool for each node. Linux takes a page from the node of the thread that touches it
// first. A record is carved, and touched, by a thread of the node whose pool it is from, and goes
// back to that pool, wherever the goroutine ended.
//
// Records are never given back while the runtime runs, and always are Gs. Slabs are large. Once
// there are many goroutines they ask for huge pages: the first touch of a page costs microseconds
// on a virtual machine, more than everything else in go() together. Dumps and statistics find every
// goroutine through the slabs. Each slab also brings the global queue the room to hold its records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "base/page_array.h"
#include "sched/core/chunk_store.h"
#include "sched/core/g.h"

namespace magpie::sched {

class GPool {
 public:
  // `node` is that of its records.
  explicit GPool(ChunkStore& chunks, std::uint8_t node = 0) : chunks_(chunks), node_(node) {}
  ~GPool();
  GPool(const GPool&) = delete;
  GPool& operator=(const GPool&) = delete;

  // Fills part of `out`, at least one record; returns how many. 0: there is no memory.
  [[nodiscard]] std::size_t take(std::span<G*> out);
  void give(std::span<G* const> records);

  // The records carved so far in the slab with that number, for a reader that must not hold the
  // lock for long. Empty: there is no such slab.
  std::span<G> carved_in(std::size_t slab) {
    lock_.lock();
    std::span<G> carved;
    if (slab < slab_count_) carved = {slabs_[slab].records, slabs_[slab].carved};
    lock_.unlock();
    return carved;
  }

  // Calls f(g) for every record ever carved, also for free ones. Records may change meanwhile.
  template <class F>
  void for_each(F f) {
    lock_.lock();
    for (std::size_t i = 0; i < slab_count_; ++i) {
      Slab slab = slabs_[i];
      lock_.unlock();
      for (std::size_t k = 0; k < slab.carved; ++k) f(slab.records + k);
      lock_.lock();
    }
    lock_.unlock();
  }

 private:
  friend struct Layout;  // run/layout.h

  static constexpr std::size_t kFirstSlabBytes = std::size_t{128} << 10;
  static constexpr std::size_t kLargestSlabBytes = std::size_t{32} << 20;
  static constexpr std::size_t kFirstSlabs = 64;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  struct Slab {
    void* mapping;
    std::size_t mapped_bytes;
    G* records;
    std::size_t capacity;
    std::size_t carved;
  };

  [[nodiscard]] bool add_slab_locked() MAGPIE_REQUIRES(lock_);
  Slab& last_slab_locked() MAGPIE_REQUIRES(lock_) { return slabs_[slab_count_ - 1]; }

  ChunkStore& chunks_;
  const std::uint8_t node_;
  base::Lock lock_;
  // Has capacity for every record: giving cannot fail.
  base::PageArray<G*> free_ MAGPIE_GUARDED_BY(lock_);
  std::size_t free_count_ MAGPIE_GUARDED_BY(lock_) = 0;
  std::size_t records_ MAGPIE_GUARDED_BY(lock_) = 0;
  base::PageArray<Slab> slabs_ MAGPIE_GUARDED_BY(lock_);
  std::size_t slab_count_ MAGPIE_GUARDED_BY(lock_) = 0;
};

// The pools of all nodes.
class GPools {
 public:
  explicit GPools(ChunkStore& chunks)
      : GPools(chunks, std::make_integer_sequence<std::uint8_t, kMostNodes>()) {}

  // From now on nodes 0 to `count` - 1 are used. There are never fewer.
  void use(std::uint32_t count) {
    if (count > this->count()) count_.store(count, base::relaxed);
  }
  std::uint32_t count() const { return count_.load(base::relaxed); }

  // Fills part of `out` from the pool of that node, or else of another; returns how many. 0: there
  // is no memory.
  [[nodiscard]] std::size_t take(std::uint32_t node, std::span<G*> out);
  // Each goes back to the pool that it is from.
  void give(std::span<G* const> records);

  GPool& of(std::uint32_t node) { return pools_[node]; }

  // For a reader that must not hold a lock for long: the records carved so far in the slab where
  // the walk is. The reader goes on to the next slab, this function to the next node. Empty: the
  // walk is over.
  struct Walk {
    std::uint32_t node = 0;
    std::size_t slab = 0;
  };
  std::span<G> carved_in(Walk& walk) {
    for (; walk.node < count(); ++walk.node, walk.slab = 0) {
      std::span<G> carved = pools_[walk.node].carved_in(walk.slab);
      if (!carved.empty()) return carved;
    }
    return {};
  }

  // As that of each pool.
  template <class F>
  void for_each(F f) {
    for (std::uint32_t node = 0; node < count(); ++node) pools_[node].for_each(f);
  }

 private:
  friend struct Layout;  // run/layout.h

  template <std::uint8_t... Nodes>
  GPools(ChunkStore& chunks, std::integer_sequence<std::uint8_t, Nodes...>)
      : pools_{GPool(chunks, Nodes)...} {}

  GPool pools_[kMostNodes];
  // atomic, a hint: it grows before a stop of the world, after which threads carve from the new
  // pool. So a thread that has a record of a pool knows of the pool.
  base::Atomic<std::uint32_t> count_{1};
};

// The records that one P keeps at hand. Owner only. Last in, first out, so that they are warm.
class GCache {
 public:
  // `node` is that of the P. Null: there is no memory.
  G* take(GPools& pools, std::uint32_t node) {
    if (is_empty()) count_ = pools.take(node, {free_.data(), kBatch});
    return is_empty() ? nullptr : take_at_hand();
  }
  void give(GPools& pools, G* g) {
    if (is_full()) give_oldest(pools, kMost / 2);
    keep(g);
  }

  // These do without the pool. take_at_hand: only while it is not empty. keep: only while it is not
  // full.
  bool is_empty() const { return count_ == 0; }
  bool is_full() const { return count_ == kMost; }
  G* take_at_hand() {
    std::size_t last = count_ - 1;
    count_ = last;
    if (last >= 4) prefetch(free_[last - 4]);
    return free_[last];
  }
  void keep(G* g) {
    std::size_t count = count_;
    free_[count] = g;
    count_ = count + 1;
  }

  std::size_t count() const { return count_; }  // anyone, for people

  void give_all(GPools& pools) { give_oldest(pools, count_); }

 private:
  static constexpr std::size_t kBatch = 128;
  static constexpr std::size_t kMost = 256;

  void give_oldest(GPools& pools, std::size_t count);

  std::array<G*, kMost> free_;
  base::Relaxed<std::size_t> count_ = 0;
};

}  // namespace magpie::sched
