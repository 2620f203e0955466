#include "sched/core/global_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/guard.h"
#include "sched/policy.h"

namespace magpie::sched {

// All chunks of a line but the first and the last are full, however small the batches: push fills
// the last one upwards, push_front the first one downwards. Hence the spare ones.
std::size_t GlobalQueue::bytes_of_room(std::size_t records) {
  constexpr std::size_t kSpareChunks = 8;
  return (records / kChunk + kSpareChunks) * sizeof(Chunk);
}

void GlobalQueue::add_room(std::byte* memory, std::size_t bytes) {
  base::Guard hold(lock_);
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
  chunk->since_ns = base::coarse_now_ns();
  chunk->first = chunk->end = 0;
  return chunk;
}

void GlobalQueue::change_size_locked(Line& line, std::size_t by) {
  line.size.store(line.size.load(base::relaxed) + by, base::relaxed);
  size_.store(size_.load(base::relaxed) + by, base::relaxed);
}

void GlobalQueue::push(Line& line, std::span<G* const> batch) {
  base::Guard hold(lock_);
  change_size_locked(line, batch.size());
  while (!batch.empty()) {
    if (line.tail == nullptr || line.tail->end == kChunk) {
      Chunk* chunk = new_chunk_locked();
      (line.tail == nullptr ? line.head : line.tail->next) = chunk;
      line.tail = chunk;
    }
    std::size_t count = std::min<std::size_t>(batch.size(), kChunk - line.tail->end);
    std::copy_n(batch.begin(), count, line.tail->items + line.tail->end);
    line.tail->end += static_cast<std::uint32_t>(count);
    batch = batch.subspan(count);
  }
}

void GlobalQueue::push_front(Line& line, std::span<G* const> batch) {
  base::Guard hold(lock_);
  change_size_locked(line, batch.size());
  while (!batch.empty()) {  // the last part first, so that the first ends up in front
    if (line.head == nullptr || line.head->first == 0) {
      Chunk* chunk = new_chunk_locked();
      chunk->first = chunk->end = kChunk;  // filled downwards: the next call goes on in it
      chunk->next = line.head;
      line.head = chunk;
      if (line.tail == nullptr) line.tail = chunk;
    }
    std::size_t count = std::min<std::size_t>(batch.size(), line.head->first);
    line.head->first -= static_cast<std::uint32_t>(count);
    std::copy_n(batch.end() - static_cast<std::ptrdiff_t>(count), count,
                line.head->items + line.head->first);
    batch = batch.first(batch.size() - count);
  }
}

std::size_t GlobalQueue::pop_locked(Line& line, std::span<G*> out) {
  std::size_t taken = 0;
  while (taken < out.size() && line.head != nullptr) {
    Chunk* chunk = line.head;
    std::size_t count = std::min<std::size_t>(out.size() - taken, chunk->end - chunk->first);
    std::copy_n(chunk->items + chunk->first, count,
                out.begin() + static_cast<std::ptrdiff_t>(taken));
    taken += count;
    chunk->first += static_cast<std::uint32_t>(count);
    if (chunk->first != chunk->end) break;
    line.head = chunk->next;
    if (line.head == nullptr) line.tail = nullptr;
    chunk->next = free_;
    free_ = chunk;
  }
  change_size_locked(line, -taken);
  return taken;
}

G* GlobalQueue::pop() {
  if (empty()) return nullptr;
  base::Guard hold(lock_);
  Line* const lines[] = {&urgent_, &usual_};
  G* g = nullptr;
  for (std::size_t tries = 0; tries < std::size(lines) && g == nullptr; ++tries)
    pop_locked(*lines[turn_++ % std::size(lines)], {&g, 1});
  return g;
}

G* GlobalQueue::pop_stopped() {
  if (stopped() == 0) return nullptr;
  base::Guard hold(lock_);
  G* g = nullptr;
  pop_locked(stopped_, {&g, 1});
  return g;
}

std::size_t GlobalQueue::share_of(const Line& line, std::size_t procs) {
  return policy::share_of_line(line.size.load(base::relaxed), procs);
}

std::size_t GlobalQueue::pop_share(std::size_t procs, std::span<G*> out) {
  return pop_from_both(procs, out, Usual::share);
}

std::size_t GlobalQueue::pop_few(std::size_t procs, std::span<G*> out) {
  return pop_from_both(procs, out, Usual::spared);
}

std::size_t GlobalQueue::pop_from_both(std::size_t procs, std::span<G*> out, Usual how) {
  if (empty()) return 0;
  base::Guard hold(lock_);
  std::size_t urgent = std::min(share_of(urgent_, procs), out.size() / 2);
  std::size_t taken = pop_locked(urgent_, out.first(urgent));
  std::size_t usual = std::min(share_of(usual_, procs), out.size() - taken);
  bool spared = how == Usual::spared && usual != 0 &&
                base::coarse_now_ns() - usual_.head->since_ns < policy::kSparedNs;
  if (spared) usual = 1;
  return taken + pop_locked(usual_, out.subspan(taken, usual));
}

std::size_t GlobalQueue::pop_usual(std::span<G*> out) {
  if (empty()) return 0;
  base::Guard hold(lock_);
  return pop_locked(usual_, out);
}

// It changes places with the first of the line, so that taking it out moves nobody else.
bool GlobalQueue::bring_bound_to_front_locked(Line& line) {
  for (Chunk* chunk = line.head; chunk != nullptr; chunk = chunk->next) {
    for (std::uint32_t i = chunk->first; i != chunk->end; ++i) {
      if (!chunk->items[i]->bound) continue;
      std::swap(chunk->items[i], line.head->items[line.head->first]);
      return true;
    }
  }
  return false;
}

G* GlobalQueue::take_bound() {
  if (empty()) return nullptr;
  base::Guard hold(lock_);
  for (Line* line : {&urgent_, &usual_}) {
    if (!bring_bound_to_front_locked(*line)) continue;
    G* g = nullptr;
    pop_locked(*line, {&g, 1});
    return g;
  }
  return nullptr;
}

}  // namespace magpie::sched
