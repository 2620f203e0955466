// in_place.h: what other threads hand to an M that sleeps with its goroutine. bound.h defines
// [in-place].
#pragma once

#include <utility>

#include "base/annotations.h"
#include "base/atomic.h"
#include "sched/rest/idle_lock.h"

namespace magpie::sched {

// How a thread that waited in place continues. without_p: the valve let it out. nowhere: the
// runtime ends.
enum class Goes { with_p, without_p, nowhere };

// Guarded by Idle's lock until the thread's wake_up is set, then the thread's own. The same is true
// of M::Rest::handed, which an M on Idle's list uses too.
template <class P>
class InPlace {
 public:
  using Handed = base::Guarded<P*>;

  // The thread calls this, if the runtime does not end.
  void begin_locked() MAGPIE_REQUIRES(idle_lock()) { waits_ = true; }
  bool waits_locked() const MAGPIE_REQUIRES(idle_lock()) { return waits_; }

  // Each of these lowers the flag. False: another thread has lowered it, or the thread no longer
  // waits. True: the caller has to wake the thread.
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

  // The thread calls this after it was woken. Goes::with_p: the P is in `p`.
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
  base::Guarded<bool> let_out_ = false;  // it continues without a P
};

// The M that got the P which sysmon took from this M. This M's thread wakes it as it stops, on the
// CPU that becomes free. Sysmon wakes it if that takes long, or the runtime ends. The thread that
// takes it out wakes it.
template <class M>
class Successor {
 public:
  // Sysmon calls this after the successor was handed the P.
  void set(M* m) { named_.store(m, base::release); }
  // Null: there is none, or another thread has taken it.
  [[nodiscard]] M* take() {
    // relaxed: most often there is none. Sysmon, which set it, looks again
    if (named_.load(base::relaxed) == nullptr) return nullptr;
    return named_.exchange(nullptr, base::acquire);  // with set(): what it was handed
  }
  M* glance() const { return named_.load(base::relaxed); }  // relaxed: for people

 private:
  // atomic [in-place]: sysmon sets it, the thread that takes it out wakes the M
  base::Atomic<M*> named_{nullptr};
};

}  // namespace magpie::sched
