// published_table.h: an array that grows while others read it without a lock.
// A grown array is a new array. Old ones stay.
//
// Protocol  [grown-table]
//
//   writer:   fills the new array;  publishes it;  publishes how many there are, and are in use
//   readers:  read how many;  then which array
//
// No hole   A reader that sees a count sees the array that was published before it, or a later one.
//           Later arrays are longer and begin with the elements of the earlier ones. So every
//           element below the count is there, and filled.
// Writers   One at a time: the thread that has stopped the world.
// Lifetime  Published arrays live as long as readers may come.
// Orders    [grown-table] array and counts are stored with release and loaded with acquire.
// Proof     tests/model/table_model.cc
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

template <class Element>
class PublishedTable {
 public:
  struct View {
    Element* first;
    std::size_t count;
  };
  View in_use() const {
    std::size_t count = in_use_.load(base::acquire);  // [grown-table] before the array
    return {table_.load(base::acquire), count};
  }
  // The elements in use and the ones no longer in use.
  View all() const {
    std::size_t count = made_.load(base::acquire);  // [grown-table] before the array
    return {table_.load(base::acquire), count};
  }
  std::uint32_t count_in_use() const { return in_use_.load(base::relaxed); }  // the number alone

  // The first `made` elements of the array are filled. They begin with the elements of the array
  // before.
  void publish(Element* table, std::size_t made) {
    table_.store(table, base::release);
    made_.store(made, base::release);
  }
  void set_in_use(std::uint32_t count) { in_use_.store(count, base::release); }

 private:
  friend struct Layout;  // run/layout.h

  base::Atomic<std::uint32_t> in_use_{0};  // atomic [grown-table]
  base::Atomic<std::size_t> made_{0};      // atomic [grown-table]
  base::Atomic<Element*> table_{nullptr};  // atomic [grown-table]
};

}  // namespace magpie::sched
