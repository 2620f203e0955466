// goroutine_map.h: what a reader of traces knows of each goroutine, by number. Open addressing:
// millions of goroutines come and go, and each event looks one up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace magpie::trace {

template <class T>
class GoroutineMap {
 public:
  // Null: it is not there. Number 0 never is.
  T* find(std::uint64_t goroutine) {
    if (slots_.empty()) return nullptr;
    for (std::size_t i = home(goroutine);; i = next(i)) {
      if (slots_[i].key == goroutine && goroutine != 0) return &slots_[i].value;
      if (slots_[i].key == 0) return nullptr;
    }
  }

  // The goroutine's entry, which is made if it is not there. Not for number 0.
  T& need(std::uint64_t goroutine) {
    if (T* there = find(goroutine)) return *there;
    if (2 * (count_ + 1) > slots_.size()) grow();
    ++count_;
    return insert(goroutine, T{});
  }

  void erase(std::uint64_t goroutine) {
    T* there = find(goroutine);
    if (there == nullptr) return;
    --count_;
    // Entries behind it that are not at home move up, so that a search never meets a gap.
    std::size_t gap = home(goroutine);
    while (slots_[gap].key != goroutine) gap = next(gap);
    for (std::size_t i = next(gap); slots_[i].key != 0; i = next(i)) {
      std::size_t distance = (i - home(slots_[i].key)) & mask();
      if (distance < ((i - gap) & mask())) continue;
      slots_[gap] = std::move(slots_[i]);
      gap = i;
    }
    slots_[gap] = Slot{};
  }

  std::size_t size() const { return count_; }
  void clear() {
    slots_.clear();
    count_ = 0;
  }

  template <class F>
  void for_each(F f) {
    for (Slot& slot : slots_) {
      if (slot.key != 0) f(slot.key, slot.value);
    }
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    T value{};
  };

  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t next(std::size_t i) const { return (i + 1) & mask(); }
  std::size_t home(std::uint64_t goroutine) const {
    return static_cast<std::size_t>((goroutine * 0x9e3779b97f4a7c15) >> 20) & mask();
  }

  T& insert(std::uint64_t goroutine, T value) {
    std::size_t i = home(goroutine);
    while (slots_[i].key != 0) i = next(i);
    slots_[i] = Slot{goroutine, std::move(value)};
    return slots_[i].value;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.key != 0) insert(slot.key, std::move(slot.value));
    }
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half of them used
  std::size_t count_ = 0;
};

}  // namespace magpie::trace
