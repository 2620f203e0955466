#include "sched/global_queue.h"

#include <algorithm>
#include <mutex>

namespace magpie::sched {

// All chunks but the first and the last are full, however small the batches: push fills the last one
// upwards, push_front the first one downwards. Hence the spare ones.
std::size_t GlobalQueue::bytes_of_room(std::size_t records) {
  constexpr std::size_t kSpareChunks = 4;
  return (records / kChunk + kSpareChunks) * sizeof(Chunk);
}

void GlobalQueue::add_room(std::byte* memory, std::size_t bytes) {
  std::lock_guard hold(lock_);
  auto* piece = reinterpret_cast<Piece*>(memory);
  *piece = Piece{pieces_, memory + bytes};
  pieces_ = piece;
}

GlobalQueue::Chunk* GlobalQueue::new_chunk_locked() {
  Chunk* chunk = free_;
  if (chunk != nullptr) {
    free_ = chunk->next;
  } else {
    if (static_cast<std::size_t>(room_end_ - room_) < sizeof(Chunk)) {
      MAGPIE_CHECK(pieces_ != nullptr);
      Piece piece = *pieces_;
      room_ = reinterpret_cast<std::byte*>(pieces_);
      room_end_ = piece.end;
      pieces_ = piece.next;
    }
    chunk = reinterpret_cast<Chunk*>(room_);
    room_ += sizeof(Chunk);
  }
  chunk->next = nullptr;
  chunk->first = chunk->end = 0;
  return chunk;
}

void GlobalQueue::push(std::span<G* const> batch) {
  std::lock_guard hold(lock_);
  size_.store(size_.load(base::relaxed) + batch.size(), base::relaxed);
  while (!batch.empty()) {
    if (tail_ == nullptr || tail_->end == kChunk) {
      Chunk* chunk = new_chunk_locked();
      (tail_ == nullptr ? head_ : tail_->next) = chunk;
      tail_ = chunk;
    }
    std::size_t count = std::min<std::size_t>(batch.size(), kChunk - tail_->end);
    std::copy_n(batch.begin(), count, tail_->items + tail_->end);
    tail_->end += static_cast<std::uint32_t>(count);
    batch = batch.subspan(count);
  }
}

void GlobalQueue::push_front(std::span<G* const> batch) {
  std::lock_guard hold(lock_);
  size_.store(size_.load(base::relaxed) + batch.size(), base::relaxed);
  while (!batch.empty()) {  // the last part first, so that the first ends up in front
    if (head_ == nullptr || head_->first == 0) {
      Chunk* chunk = new_chunk_locked();
      chunk->first = chunk->end = kChunk;  // filled downwards: the next call goes on in it
      chunk->next = head_;
      head_ = chunk;
      if (tail_ == nullptr) tail_ = chunk;
    }
    std::size_t count = std::min<std::size_t>(batch.size(), head_->first);
    head_->first -= static_cast<std::uint32_t>(count);
    std::copy_n(batch.end() - static_cast<std::ptrdiff_t>(count), count,
                head_->items + head_->first);
    batch = batch.first(batch.size() - count);
  }
}

std::size_t GlobalQueue::pop_locked(std::span<G*> out) {
  std::size_t taken = 0;
  while (taken < out.size() && head_ != nullptr) {
    Chunk* chunk = head_;
    std::size_t count = std::min<std::size_t>(out.size() - taken, chunk->end - chunk->first);
    std::copy_n(chunk->items + chunk->first, count,
                out.begin() + static_cast<std::ptrdiff_t>(taken));
    taken += count;
    chunk->first += static_cast<std::uint32_t>(count);
    if (chunk->first != chunk->end) break;
    head_ = chunk->next;
    if (head_ == nullptr) tail_ = nullptr;
    chunk->next = free_;
    free_ = chunk;
  }
  size_.store(size_.load(base::relaxed) - taken, base::relaxed);
  return taken;
}

G* GlobalQueue::pop() {
  if (empty()) return nullptr;
  std::lock_guard hold(lock_);
  G* g = nullptr;
  pop_locked({&g, 1});
  return g;
}

std::size_t GlobalQueue::pop_share(std::size_t procs, std::span<G*> out) {
  if (empty()) return 0;
  std::lock_guard hold(lock_);
  std::size_t size = size_.load(base::relaxed);
  return pop_locked(out.first(std::min({size, size / procs + 1, out.size()})));
}

}  // namespace magpie::sched
