#include "sched/core/shard.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/guard.h"
#include "sched/policy.h"

namespace magpie::sched {

Chunk* Shard::new_chunk_locked() {
  Chunk* chunk = free_;
  if (chunk != nullptr) {
    free_ = chunk->next;
    --kept_;
  } else {
    chunk = store_->take();
  }
  chunk->next = nullptr;
  chunk->since_ns = base::coarse_now_ns();
  chunk->first = chunk->end = 0;
  return chunk;
}

void Shard::drop_chunk_locked(Chunk* chunk) {
  if (kept_ == kKeptChunks) return store_->give(chunk);
  chunk->next = free_;
  free_ = chunk;
  ++kept_;
}

void Shard::change_size_locked(Line& line, std::size_t by) {
  line.size.store(line.size.load(base::relaxed) + by, base::relaxed);
  size_.store(size_.load(base::relaxed) + by, base::relaxed);
}

void Shard::push(Line& line, std::span<G* const> batch) {
  base::Guard hold(lock_);
  change_size_locked(line, batch.size());
  while (!batch.empty()) {
    if (line.tail == nullptr || line.tail->end == Chunk::kItems) {
      Chunk* chunk = new_chunk_locked();
      if (line.tail == nullptr) line.oldest_ns.store(chunk->since_ns, base::relaxed);
      (line.tail == nullptr ? line.head : line.tail->next) = chunk;
      line.tail = chunk;
    }
    std::size_t count = std::min<std::size_t>(batch.size(), Chunk::kItems - line.tail->end);
    std::copy_n(batch.begin(), count, line.tail->items + line.tail->end);
    line.tail->end += static_cast<std::uint32_t>(count);
    batch = batch.subspan(count);
  }
}

// What goes to the front is at least as old as what is there, so oldest_ns stays.
void Shard::push_front(Line& line, std::span<G* const> batch) {
  base::Guard hold(lock_);
  bool may_hold_bound =
      line.looked_in != nullptr &&
      std::any_of(batch.begin(), batch.end(), [](const G* g) { return bool{g->bound}; });
  if (may_hold_bound) line.looked_in = nullptr;  // what take_bound() has looked at begins here
  change_size_locked(line, batch.size());
  while (!batch.empty()) {  // the last part first, so that the first ends up in front
    if (line.head == nullptr || line.head->first == 0) {
      Chunk* chunk = new_chunk_locked();
      chunk->first = chunk->end = Chunk::kItems;  // filled downwards: the next call goes on in it
      chunk->next = line.head;
      line.head = chunk;
      if (line.tail == nullptr) {
        line.tail = chunk;
        line.oldest_ns.store(chunk->since_ns, base::relaxed);
      }
    }
    std::size_t count = std::min<std::size_t>(batch.size(), line.head->first);
    line.head->first -= static_cast<std::uint32_t>(count);
    std::copy_n(batch.end() - static_cast<std::ptrdiff_t>(count), count,
                line.head->items + line.head->first);
    batch = batch.first(batch.size() - count);
  }
}

std::size_t Shard::pop_locked(Line& line, std::span<G*> out) {
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
    line.oldest_ns.store(line.head == nullptr ? kNever : line.head->since_ns, base::relaxed);
    if (line.looked_in == chunk) line.looked_in = nullptr;  // what is left was not looked at
    drop_chunk_locked(chunk);
  }
  change_size_locked(line, -taken);
  return taken;
}

G* Shard::pop() {
  if (empty()) return nullptr;
  base::Guard hold(lock_);
  Line* const lines[] = {&urgent_, &usual_};
  G* g = nullptr;
  for (std::size_t tries = 0; tries < std::size(lines) && g == nullptr; ++tries)
    pop_locked(*lines[pops_++ % std::size(lines)], {&g, 1});
  return g;
}

G* Shard::pop_stopped() {
  if (stopped() == 0) return nullptr;
  base::Guard hold(lock_);
  G* g = nullptr;
  pop_locked(stopped_, {&g, 1});
  return g;
}

std::size_t Shard::share_of(const Line& line, std::size_t procs) {
  return policy::share_of_line(line.size.load(base::relaxed), procs);
}

std::size_t Shard::pop_from_both(std::size_t procs, std::span<G*> out, Usual how) {
  if (empty()) return 0;
  base::Guard hold(lock_);
  std::size_t urgent = std::min(share_of(urgent_, procs), out.size() / 2);
  std::size_t taken = pop_locked(urgent_, out.first(urgent));
  return taken + pop_usual_share_locked(procs, out.subspan(taken), how);
}

std::size_t Shard::pop_usual_share(std::size_t procs, std::span<G*> out, Usual how) {
  if (empty()) return 0;
  base::Guard hold(lock_);
  return pop_usual_share_locked(procs, out, how);
}

std::size_t Shard::pop_usual_share_locked(std::size_t procs, std::span<G*> out, Usual how) {
  if (how == Usual::none) return 0;
  std::size_t usual = std::min(share_of(usual_, procs), out.size());
  bool spared = how == Usual::spared && usual != 0 &&
                base::coarse_now_ns() - usual_.head->since_ns < policy::kSparedNs;
  if (spared) usual = 1;
  return pop_locked(usual_, out.first(usual));
}

std::size_t Shard::pop_usual(std::span<G*> out) {
  if (empty()) return 0;
  base::Guard hold(lock_);
  return pop_locked(usual_, out);
}

// It changes places with the first of the line, so that taking it out moves nobody else.
bool Shard::bring_bound_to_front_locked(Line& line, std::size_t& looks) {
  if (line.looked_in == nullptr && line.head != nullptr) {
    line.looked_in = line.head;
    line.looked_to = 0;
  }
  while (Chunk* chunk = line.looked_in) {
    for (std::uint32_t at = std::max(line.looked_to, chunk->first); at != chunk->end; ++at) {
      line.looked_to = at + 1;
      if (chunk->items[at]->bound) {
        std::swap(chunk->items[at], line.head->items[line.head->first]);
        return true;
      }
      if (--looks == 0) return false;
    }
    if (chunk->next == nullptr) return false;  // later ones come here, or into a chunk behind it
    line.looked_in = chunk->next;
    line.looked_to = 0;
  }
  return false;
}

G* Shard::take_bound() {
  if (empty()) return nullptr;
  base::Guard hold(lock_);
  std::size_t looks = kLooksForBound;
  for (Line* line : {&urgent_, &usual_}) {
    if (!bring_bound_to_front_locked(*line, looks)) {
      if (looks == 0) return nullptr;
      continue;
    }
    G* g = nullptr;
    pop_locked(*line, {&g, 1});
    return g;
  }
  return nullptr;
}

void Shard::look_at_all_again() {
  base::Guard hold(lock_);
  urgent_.looked_in = usual_.looked_in = nullptr;
}

}  // namespace magpie::sched
