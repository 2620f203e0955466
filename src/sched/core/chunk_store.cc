#include "sched/core/chunk_store.h"

#include "base/check.h"
#include "base/guard.h"

namespace magpie::sched {

void ChunkStore::add_room(std::byte* memory, std::size_t bytes) {
  base::Guard hold(lock_);
  auto* piece = reinterpret_cast<Piece*>(memory);
  *piece = Piece{pieces_, memory + bytes};
  pieces_ = piece;
}

Chunk* ChunkStore::take() {
  base::Guard hold(lock_);
  if (free_ != nullptr) {
    Chunk* chunk = free_;
    free_ = chunk->next;
    return chunk;
  }
  if (static_cast<std::size_t>(room_end_ - room_) < sizeof(Chunk)) {
    MAGPIE_CHECK(pieces_ != nullptr);
    Piece piece = *pieces_;
    room_ = reinterpret_cast<std::byte*>(pieces_);
    room_end_ = piece.end;
    pieces_ = piece.next;
  }
  auto* chunk = reinterpret_cast<Chunk*>(room_);
  room_ += sizeof(Chunk);
  return chunk;
}

void ChunkStore::give(Chunk* chunk) {
  base::Guard hold(lock_);
  chunk->next = free_;
  free_ = chunk;
}

}  // namespace magpie::sched
