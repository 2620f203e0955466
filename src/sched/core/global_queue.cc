#include "sched/core/global_queue.h"

#include <algorithm>

#include "sched/policy.h"

namespace magpie::sched {

GlobalQueue::GlobalQueue() {
  for (Shard& shard : shards_) shard.set_store(chunks_);
}

bool GlobalQueue::add_shards(std::uint32_t nodes) {
  for (std::uint32_t node = shard_count(); node < nodes; ++node) {
    std::size_t bytes = ChunkStore::bytes_of_room(0);
    if (!spare_chunks_[node].grow_to(bytes)) return false;
    chunks_.add_room(spare_chunks_[node].data(), bytes);
    shard_count_.store(node + 1, base::relaxed);
  }
  return true;
}

std::size_t GlobalQueue::size() const {
  std::size_t all = shards_[0].size();
  for (std::uint32_t node = 1; node < shard_count(); ++node) all += shards_[node].size();
  return all;
}

std::size_t GlobalQueue::urgent() const {
  std::size_t all = shards_[0].urgent();
  for (std::uint32_t node = 1; node < shard_count(); ++node) all += shards_[node].urgent();
  return all;
}

bool GlobalQueue::others_are_empty() const {
  for (std::uint32_t node = 1; node < shard_count(); ++node)
    if (!shards_[node].empty()) return false;
  return true;
}

// The shard from which a P of this node takes next.
template <class OldestNs>
std::uint32_t GlobalQueue::first_for(std::uint32_t node, OldestNs oldest_ns) const {
  std::uint32_t first = node;
  std::int64_t least = policy::rank_of_own_shard(oldest_ns(shards_[node]));
  for (std::uint32_t other = 0; other < shard_count(); ++other) {
    if (other == node || oldest_ns(shards_[other]) >= least) continue;
    first = other;
    least = oldest_ns(shards_[other]);
  }
  return first;
}

G* GlobalQueue::pop_slow(std::uint32_t node) {
  if (is_alone()) return shards_[0].pop();
  auto oldest_ns = [](const Shard& shard) {
    return std::min(shard.oldest_urgent_ns(), shard.oldest_usual_ns());
  };
  if (G* g = shards_[first_for(node, oldest_ns)].pop()) return g;
  for (std::uint32_t other = 0; other < shard_count(); ++other)
    if (G* g = shards_[other].pop()) return g;
  return nullptr;
}

std::size_t GlobalQueue::pop_from_both(Taker taker, std::span<G*> out, Shard::Usual how) {
  if (is_alone()) return shards_[0].pop_from_both(taker.procs, out, how);
  auto procs_at = [&](std::uint32_t node) {
    return node == taker.node ? taker.procs_of_node : taker.procs;
  };
  std::uint32_t urgent = first_for(taker.node, [](const Shard& s) { return s.oldest_urgent_ns(); });
  std::uint32_t usual = first_for(taker.node, [](const Shard& s) { return s.oldest_usual_ns(); });
  if (urgent == usual) return shards_[urgent].pop_from_both(procs_at(urgent), out, how);
  std::size_t taken = shards_[urgent].pop_from_both(procs_at(urgent), out, Shard::Usual::none);
  return taken + shards_[usual].pop_usual_share(procs_at(usual), out.subspan(taken), how);
}

void GlobalQueue::look_at_all_again() {
  for (std::uint32_t node = 0; node < shard_count(); ++node) shards_[node].look_at_all_again();
}

G* GlobalQueue::take_bound() {
  for (std::uint32_t node = 0; node < shard_count(); ++node)
    if (G* g = shards_[node].take_bound()) return g;
  return nullptr;
}

}  // namespace magpie::sched
