#include "sched/core/g_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "base/guard.h"
#include "base/os.h"

namespace magpie::sched {

GPool::~GPool() {
  for (std::size_t i = 0; i < slab_count_; ++i) munmap(slabs_[i].mapping, slabs_[i].mapped_bytes);
}

std::size_t GPool::take(std::span<G*> out) {
  base::Guard hold(lock_);
  std::size_t count = std::min(out.size(), free_count_);
  if (count != 0) {
    free_count_ -= count;
    std::copy_n(free_.data() + free_count_, count, out.begin());
    return count;
  }
  if (slab_count_ == 0 || last_slab_locked().carved == last_slab_locked().capacity) {
    if (!add_slab_locked()) return 0;
  }
  Slab& slab = last_slab_locked();
  count = std::min(out.size(), slab.capacity - slab.carved);
  slab.carved += count;
  // Caches are used from their end. So the lowest address is last in the array, and memory is
  // touched upwards.
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = new (slab.records + slab.carved - 1 - i) G;
    out[i]->node = node_;
  }
  return count;
}

void GPool::give(std::span<G* const> records) {
  base::Guard hold(lock_);
  std::copy(records.begin(), records.end(), free_.data() + free_count_);
  free_count_ += records.size();
}

// Asks the kernel for memory under the lock. That is rare, and two threads that both found the pool
// empty should not map twice.
bool GPool::add_slab_locked() {
  std::size_t bytes = slab_count_ == 0
                          ? kFirstSlabBytes
                          : std::min(last_slab_locked().mapped_bytes * 4, kLargestSlabBytes);
  std::size_t room = ChunkStore::bytes_of_room(bytes / sizeof(G));
  std::size_t capacity = (bytes - room) / sizeof(G);
  bool has_room =
      (slabs_.capacity() > slab_count_ || slabs_.grow_to(2 * slab_count_ + kFirstSlabs)) &&
      (free_.capacity() >= records_ + capacity || free_.grow_to(2 * (records_ + capacity)));
  if (!has_room) return false;
  void* mapping = base::os().map(nullptr, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return false;
  if (bytes >= 2 * kHugePage) madvise(mapping, bytes, MADV_HUGEPAGE);
  auto* memory = static_cast<std::byte*>(mapping);
  slabs_[slab_count_++] = Slab{mapping, bytes, reinterpret_cast<G*>(memory), capacity, 0};
  records_ += capacity;
  chunks_.add_room(memory + capacity * sizeof(G), room);
  return true;
}

std::size_t GPools::take(std::uint32_t node, std::span<G*> out) {
  std::size_t taken = pools_[node].take(out);
  for (std::uint32_t other = 0; taken == 0 && other < count(); ++other)
    if (other != node) taken = pools_[other].take(out);
  return taken;
}

void GPools::give(std::span<G* const> records) {
  if (count() == 1) return pools_[0].give(records);
  constexpr std::size_t kAtOnce = 128;
  std::array<G*, kAtOnce> some;
  for (std::uint32_t node = 0; node < count(); ++node) {
    std::size_t found = 0;
    for (G* g : records) {
      if (g->node != node) continue;
      some[found++] = g;
      if (found == kAtOnce) pools_[node].give({some.data(), std::exchange(found, 0)});
    }
    if (found != 0) pools_[node].give({some.data(), found});
  }
}

void GCache::give_oldest(GPools& pools, std::size_t count) {
  pools.give({free_.data(), count});
  std::copy(free_.begin() + static_cast<std::ptrdiff_t>(count),
            free_.begin() + static_cast<std::ptrdiff_t>(count_), free_.begin());
  count_ = count_ - count;
}

}  // namespace magpie::sched
