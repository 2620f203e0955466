// in_place.h: what others hand to an M that sleeps with its goroutine. See bound.h, which defines [in-place].
#pragma once

#include <utility>

#include "base/annotations.h"
#include "base/atomic.h"
#include "sched/rest/idle_lock.h"

namespace magpie::sched {

// How a thread that waited in place goes on. without_p: let out by the valve; nowhere: the runtime ends.
enum class Goes { with_p, without_p, nowhere };

// Guarded by Idle's lock until the thread's wake_up is set, then the thread's. So is M::handed, which an M that waits on Idle's list
// has too.
template <class P>
class InPlace {
 public:
  using Handed = base::Guarded<P*>;

  // The thread, if the runtime does not end.
  void begin_locked() MAGPIE_REQUIRES(idle_lock()) { waits_ = true; }
  bool waits_locked() const MAGPIE_REQUIRES(idle_lock()) { return waits_; }

  // Each lowers the flag. False: somebody else has, or it waits no more; else the caller has to wake the thread.
  [[nodiscard]] bool hand_locked(Handed& handed, P* p) MAGPIE_REQUIRES(idle_lock()) {
    if (!stop_waiting_locked()) return false;
    handed = p;
    return true;
  }
  [[nodiscard]] bool let_out_locked() MAGPIE_REQUIRES(idle_lock()) {
    if (!stop_waiting_locked()) return false;
    let_out_ = true;
    return true;
  }
  [[nodiscard]] bool send_home_locked(Handed& handed) MAGPIE_REQUIRES(idle_lock()) {
    return hand_locked(handed, nullptr);
  }

  // The thread, after it was woken. With a P: that is in `p`.
  [[nodiscard]] Goes take_what_came(Handed& handed, P*& p) {
    if (let_out_) {
      let_out_ = false;
      return Goes::without_p;
    }
    p = handed;
    handed = nullptr;
    return p == nullptr ? Goes::nowhere : Goes::with_p;
  }

 private:
  bool stop_waiting_locked() MAGPIE_REQUIRES(idle_lock()) {
    if (!waits_) return false;
    waits_ = false;
    return true;
  }

  base::Guarded<bool> waits_ = false;
  base::Guarded<bool> let_out_ = false;  // it goes on without a P
};

// The M that got the P which was taken from this one. It is woken by this one's thread as it stops, on the CPU that becomes free;
// by sysmon if that takes long, or the runtime ends. Whoever takes it out wakes it.
template <class M>
class Successor {
 public:
  // Sysmon: after the successor was handed the P.
  void set(M* m) { named_.store(m, base::release); }
  // Null: there is none, or somebody has it.
  [[nodiscard]] M* take() {
    // relaxed: there is none, most often. Sysmon, who set it, looks again
    if (named_.load(base::relaxed) == nullptr) return nullptr;
    return named_.exchange(nullptr, base::acquire);  // with set(): what it was handed
  }
  M* glance() const { return named_.load(base::relaxed); }  // relaxed: for people

 private:
  // atomic [in-place]: sysmon sets it, whoever takes it out wakes
  base::Atomic<M*> named_{nullptr};
};

}  // namespace magpie::sched
