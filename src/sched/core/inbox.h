// inbox.h: goroutines that a P took from elsewhere while it has work of its own.
//
// They come from the global queue, from the network and from timers. In the ring they would wait
// behind up to 255 others, and the first burst could spill them to the end of a queue that they
// have just left. Here they have every second turn of the P (find_work.cc), and none of them goes
// back. Only the holder of the P puts in and takes out. Thieves do not see the inbox. So it is
// small, and used only while no P is idle. Sysmon looks in at any time: it takes the P from a
// goroutine that runs long while others wait here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "sched/policy.h"

namespace magpie::sched {

struct G;

class Inbox {
 public:
  static constexpr std::uint32_t kPlaces = policy::kInboxPlaces;

  // ---- the holder
  std::uint32_t room() const { return kPlaces - size(); }
  // Only while there is room.
  void put(G* g) {
    place(end_).store(g, base::release);  // with glance(): g's record
    end_ = end_ + 1;
  }
  // The goroutine that came first, or null.
  G* take() {
    if (is_empty()) return nullptr;
    G* g = place(first_).load(base::relaxed);
    first_ = first_ + 1;
    return g;
  }

  // ---- anyone
  std::uint32_t size() const { return end_ - first_; }
  bool is_empty() const { return size() == 0; }
  // The goroutine that came first, or null. The holder may have taken it by now.
  G* glance() const { return is_empty() ? nullptr : place(first_).load(base::acquire); }

 private:
  friend struct Layout;  // run/layout.h

  base::Atomic<G*>& place(std::uint32_t at) { return places_[at % kPlaces]; }
  const base::Atomic<G*>& place(std::uint32_t at) const { return places_[at % kPlaces]; }

  base::Relaxed<std::uint32_t> first_ = 0, end_ = 0;  // [first_, end_) are in it; the holder writes
  base::Atomic<G*> places_[kPlaces]{};                // atomic, a hint: the holder writes
};

}  // namespace magpie::sched
