// blocks.h: who may write and read the blocks of memory that events go to.
//
// Protocol  [trace-block]
//
//            exchange                  exchange                take_full, give
//   FREE ---------------> CURRENT ----------------> FULL -----------------------> FREE
//                            ^    its writer has    |  ^      the file's writer
//                            |    no room left      |  | pin, unpin: a copier reads it meanwhile
//                            +----------------------+--+
//                              exchange, if the blocks recycle: the oldest one that is not pinned
//
// Sides     exchange: the writer of a stream.  take_full, give: the thread that writes the file.
//           pin, unpin: a snapshot, one at a time.
// Goal      A writer writes an event without a lock, and a copier reads the events of a block while
//           its writer adds more.
// No tear   The writer publishes how much of the block is written (release), after the bytes. The
//           copier reads that number (acquire) and then only bytes below it, which never change
//           while the block is pinned: a block is reused only under the lock, and only unpinned.
// Lock      All else is under the lock, which a writer takes once per block. Nothing is allocated.
// Orders    [trace-block] used: release by the writer, acquire by the copier.
// Proof     tests/model/trace_block_model.cc
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/guard.h"
#include "base/lock.h"

namespace magpie::trace {

inline constexpr std::uint16_t kOutsideStream = 0xffff;

struct Block {
  // guarded by the lock of its Blocks
  Block* next = nullptr;
  bool is_free = true;
  bool pinned = false;
  std::uint64_t sequence = 0;  // tells one use of the block from another

  // fixed while it is not free
  std::uint16_t stream = 0;
  std::uint32_t generation = 0;
  std::uint64_t first_ticks = 0;

  // The writer tells how many bytes are written.
  void publish(std::uint32_t bytes) { used_.store(bytes, base::release); }
  std::uint32_t used() const { return used_.load(base::acquire); }
  void clear() { used_.store(0, base::relaxed); }  // relaxed: under the lock

 private:
  base::Atomic<std::uint32_t> used_{0};  // atomic [trace-block]
};

class Blocks {
 public:
  enum class WhenShort { recycle, refuse };

  // Before any stream writes.
  void set_when_short(WhenShort what) { recycles_ = what == WhenShort::recycle; }
  void add(Block* block) {
    base::Guard hold(lock_);
    block->next = free_;
    free_ = block;
  }

  // Gives back the block that the writer has filled (null: it had none), and takes another. Null:
  // there is none.
  [[nodiscard]] Block* exchange(Block* filled, std::uint16_t stream, std::uint64_t ticks) {
    base::Guard hold(lock_);
    if (filled != nullptr) put_full_locked(filled);
    if (stream >= streams_ && stream != kOutsideStream) streams_ = stream + std::uint32_t{1};
    Block* block = take_free_locked();
    if (block == nullptr) return nullptr;
    block->is_free = false;
    block->sequence = ++sequence_;
    block->stream = stream;
    block->generation = generation_;
    block->first_ticks = ticks;
    block->clear();
    return block;
  }

  void put_full(Block* filled) {
    base::Guard hold(lock_);
    put_full_locked(filled);
  }

  // For the writer of the file: the oldest full block, or null. It gives the block back.
  [[nodiscard]] Block* take_full() {
    base::Guard hold(lock_);
    return take_oldest_locked();
  }
  void give(Block* block) {
    base::Guard hold(lock_);
    block->is_free = true;
    block->next = free_;
    free_ = block;
  }

  // Blocks that are taken from now on belong to another generation.
  void next_generation() {
    base::Guard hold(lock_);
    ++generation_;
  }
  std::uint32_t generation() {
    base::Guard hold(lock_);
    return generation_;
  }
  // Every P that ever asked for a block has a smaller number.
  std::uint32_t streams() {
    base::Guard hold(lock_);
    return streams_;
  }

  // For a copier. sequence_of: 0: the block is free.
  std::uint64_t sequence_of(const Block* block) {
    base::Guard hold(lock_);
    return block->is_free ? 0 : block->sequence;
  }
  // False: the block has been reused since it had this sequence.
  [[nodiscard]] bool pin(Block* block, std::uint64_t sequence) {
    base::Guard hold(lock_);
    if (block->is_free || block->sequence != sequence) return false;
    block->pinned = true;
    return true;
  }
  void unpin(Block* block) {
    base::Guard hold(lock_);
    block->pinned = false;
  }

 private:
  void put_full_locked(Block* block) MAGPIE_REQUIRES(lock_) {
    block->next = nullptr;
    (newest_ == nullptr ? oldest_ : newest_->next) = block;
    newest_ = block;
  }

  Block* take_free_locked() MAGPIE_REQUIRES(lock_) {
    Block* block = free_;
    if (block != nullptr) {
      free_ = block->next;
      return block;
    }
    return recycles_ ? take_oldest_locked() : nullptr;
  }

  // The oldest full block that is not pinned. At most one is.
  Block* take_oldest_locked() MAGPIE_REQUIRES(lock_) {
    Block* before = nullptr;
    Block* block = oldest_;
    if (block != nullptr && block->pinned) {
      before = block;
      block = block->next;
    }
    if (block == nullptr) return nullptr;
    (before == nullptr ? oldest_ : before->next) = block->next;
    if (newest_ == block) newest_ = before;
    return block;
  }

  base::Lock lock_;
  Block* free_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  Block* oldest_ MAGPIE_GUARDED_BY(lock_) = nullptr;  // of the full ones
  Block* newest_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  std::uint64_t sequence_ MAGPIE_GUARDED_BY(lock_) = 0;
  std::uint32_t generation_ MAGPIE_GUARDED_BY(lock_) = 0;
  std::uint32_t streams_ MAGPIE_GUARDED_BY(lock_) = 0;
  bool recycles_ = false;  // fixed before any stream writes
};

}  // namespace magpie::trace
