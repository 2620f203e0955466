// p_table.h: all the Ps. Those in use come first; unused ones stay for their counters.
//
// The table grows and the number in use changes only while the world is stopped. But threads without a P
// look at it too (a last look before sleeping, statistics), so a grown table is a new array; old ones live
// as long as the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/atomic.h"
#include "sched/p.h"

namespace magpie::sched {

class PTable {
 public:
  // The Ps in use.
  std::span<P* const> in_use() const {
    std::size_t count =
        in_use_.load(base::acquire);  // with set_in_use: the table is at least as new
    return {table_.load(base::acquire), count};
  }
  std::uint32_t count() const { return in_use_.load(base::relaxed); }

  // Those and the ones no longer in use.
  std::span<P* const> all() const {
    std::size_t count = made_.load(base::acquire);
    return {table_.load(base::acquire), count};
  }

  // The world is stopped, or not yet begun, for both.
  void grow_to(std::size_t count) {
    if (count <= ps_.size()) return;
    ps_.reserve(count);
    tables_.reserve(tables_.size() + 1);
    auto table = std::make_unique<P*[]>(count);
    while (ps_.size() < count) ps_.push_back(std::make_unique<P>(static_cast<int>(ps_.size())));
    for (std::size_t i = 0; i < count; ++i) table[i] = ps_[i].get();
    table_.store(table.get(), base::release);
    made_.store(count, base::release);
    tables_.push_back(std::move(table));
  }
  void set_in_use(std::uint32_t count) { in_use_.store(count, base::release); }

 private:
  base::Atomic<std::uint32_t> in_use_{
      0};  // atomic: written while the world is stopped, read by anyone
  base::Atomic<std::size_t> made_{0};
  base::Atomic<P**> table_{nullptr};

  // whoever stopped the world
  std::vector<std::unique_ptr<P>> ps_;
  std::vector<std::unique_ptr<P*[]>> tables_;
};

}  // namespace magpie::sched
