// in_transit.h: what goroutines have been given and have not come for yet.
//
// A goroutine that was handed a lock, or served with units, may be dropped before it runs, when
// run() ends. The lock may be gone by then, so nobody can give it back for the goroutine. Instead
// the giver notes the gift here, and the goroutine removes the note when it runs. Once its run() is
// over, what is still noted is nobody's: the next caller takes it back, and plain threads that wait
// are told to look (sched/run_end.h). Plain threads are not dropped, and not noted.
#pragma once

#include <cstdint>

#include <magpie/detail/wait_storage.h>

#include "base/atomic.h"
#include "sched/run_end.h"
#include "sched/wait_list.h"

namespace magpie::sync {

class InTransit {
 public:
  explicit InTransit(detail::TransitStorage& storage) : storage_(storage) {}

  // By the giver, under the lock, after take_back(): so what is noted is of one run() only.
  void note(const sched::WaitRecord& to, std::uint64_t amount, const sched::Presence& presence) {
    if (to.is_thread) return;
    storage_.generation = presence.generation();
    storage_.amount.fetch_add(amount, base::relaxed);  // relaxed: the wake-up orders
  }

  // The receiver calls this once it runs. No lock: no other looks at the amount before the
  // receiver's run() is over.
  void arrive(const sched::WaitRecord& self, std::uint64_t amount) {
    if (!self.is_thread) storage_.amount.fetch_sub(amount, base::relaxed);
  }

  // Without the lock, a hint.
  bool looks_lost() const { return storage_.amount.load(base::relaxed) != 0; }

  // Under the lock: what goroutines of a run() that is over did not come for. The caller owns it
  // now.
  [[nodiscard]] std::uint64_t take_back() {
    if (storage_.amount.load(base::relaxed) == 0) return 0;
    if (!sched::is_over(storage_.generation)) return 0;
    return storage_.amount.exchange(0, base::relaxed);  // relaxed: is_over() acquires what they did
  }

 private:
  detail::TransitStorage& storage_;
};

}  // namespace magpie::sync
