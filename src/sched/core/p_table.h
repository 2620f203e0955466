// p_table.h: all the Ps. The Ps in use come first. Unused Ps stay for their counters.
//
// The table grows, and the number in use changes, only while the world is stopped. But threads
// without a P look at the table too (a last look before sleeping, statistics). So a grown table is
// a new array, and old arrays live as long as the runtime: [grown-table].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sched/core/p.h"
#include "sched/core/published_table.h"

namespace magpie::sched {

class PTable {
 public:
  // The Ps in use.
  std::span<P* const> in_use() const { return span_of(published_.in_use()); }
  std::uint32_t count() const { return published_.count_in_use(); }

  // The Ps in use and the ones no longer in use.
  std::span<P* const> all() const { return span_of(published_.all()); }

  // Both need a world that is stopped, or has not begun. grow_to() may throw std::bad_alloc. Then
  // the table is as before, and the Ps that were made are there for the next try.
  void grow_to(std::size_t count) {
    if (count <= all().size()) return;  // ps_ may hold more, which no reader knows of
    ps_.reserve(count);
    tables_.reserve(tables_.size() + 1);
    auto table = std::make_unique<P*[]>(count);
    while (ps_.size() < count) ps_.push_back(std::make_unique<P>(static_cast<int>(ps_.size())));
    for (std::size_t i = 0; i < count; ++i) table[i] = ps_[i].get();
    published_.publish(table.get(), count);
    tables_.push_back(std::move(table));
  }
  void set_in_use(std::uint32_t count) { published_.set_in_use(count); }

 private:
  friend struct Layout;  // run/layout.h

  static std::span<P* const> span_of(PublishedTable<P*>::View view) {
    return {view.first, view.count};
  }

  PublishedTable<P*> published_;  // [grown-table]

  // only the thread that stopped the world
  std::vector<std::unique_ptr<P>> ps_;
  std::vector<std::unique_ptr<P*[]>> tables_;
};

}  // namespace magpie::sched
