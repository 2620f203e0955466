#include "sched/g_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "base/os.h"

namespace magpie::sched {

GPool::~GPool() {
  for (Slab& slab : slabs_) munmap(slab.mapping, slab.mapped_bytes);
}

std::size_t GPool::take(std::span<G*> out) {
  std::lock_guard hold(lock_);
  std::size_t count = std::min(out.size(), free_.size());
  if (count != 0) {
    std::copy(free_.end() - static_cast<std::ptrdiff_t>(count), free_.end(), out.begin());
    free_.resize(free_.size() - count);
    return count;
  }
  if (slabs_.empty() || slabs_.back().carved == slabs_.back().capacity) add_slab_locked();
  Slab& slab = slabs_.back();
  count = std::min(out.size(), slab.capacity - slab.carved);
  slab.carved += count;
  // Caches are used from their end: the lowest address last in the array, so that memory is touched upwards.
  for (std::size_t i = 0; i < count; ++i) out[i] = new (slab.records + slab.carved - 1 - i) G;
  return count;
}

void GPool::give(std::span<G* const> records) {
  std::lock_guard hold(lock_);
  free_.insert(free_.end(), records.begin(), records.end());
}

// Allocates under the lock, rarely: two threads that both found the pool empty should not map twice.
void GPool::add_slab_locked() {
  std::size_t bytes = slabs_.empty() ? kFirstSlabBytes
                                     : std::min(slabs_.back().mapped_bytes * 4, kLargestSlabBytes);
  std::size_t room = GlobalQueue::bytes_of_room(bytes / sizeof(G));
  std::size_t capacity = (bytes - room) / sizeof(G);
  slabs_.reserve(slabs_.size() + 1);
  if (free_.capacity() < records_ + capacity) free_.reserve(2 * (records_ + capacity));
  void* mapping = base::os().map(nullptr, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= 2 * kHugePage) madvise(mapping, bytes, MADV_HUGEPAGE);
  auto* memory = static_cast<std::byte*>(mapping);
  slabs_.push_back(Slab{mapping, bytes, reinterpret_cast<G*>(memory), capacity, 0});
  records_ += capacity;
  queue_.add_room(memory + capacity * sizeof(G), room);
}

void GCache::give_oldest(GPool& pool, std::size_t count) {
  pool.give({free_.data(), count});
  std::copy(free_.begin() + static_cast<std::ptrdiff_t>(count),
            free_.begin() + static_cast<std::ptrdiff_t>(count_), free_.begin());
  count_ -= count;
}

}  // namespace magpie::sched
