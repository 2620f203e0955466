// idle.h: Ps that nobody holds, and Ms that sleep or are about to.
//
// Two last-in-first-out lists under one lock, so that the warmest is woken first and the others stay asleep.
// [search-or-sleep] counts the idle Ps; the count and the list change together under the lock, so whoever
// holds the lock may trust both.
#pragma once

#include <cstddef>

#include "base/atomic.h"
#include "base/lock.h"
#include "sched/core/m.h"
#include "sched/core/p.h"

namespace magpie::sched {

class Idle {
 public:
  base::Lock& lock() { return lock_; }

  void push_locked(P* p) {
    p->state.store(PState::idle, base::relaxed);  // relaxed: for readers of statistics
    p->free_cpu = -1;
    p->next_idle = ps_;
    ps_ = p;
  }
  P* pop_p_locked() {
    P* p = ps_;
    if (p != nullptr) {
      ps_ = p->next_idle;
      p->state.store(PState::running, base::relaxed);
    }
    return p;
  }

  void push_locked(M* m) {
    m->listed = true;
    m->previous_idle = nullptr;
    m->next_idle = ms_;
    (ms_ != nullptr ? ms_->previous_idle : last_m_) = m;
    ms_ = m;
    sleeping_.store(sleeping_.load(base::relaxed) + 1, base::relaxed);
  }
  void remove_locked(M* m) {
    m->listed = false;
    (m->previous_idle == nullptr ? ms_ : m->previous_idle->next_idle) = m->next_idle;
    (m->next_idle == nullptr ? last_m_ : m->next_idle->previous_idle) = m->previous_idle;
    sleeping_.store(sleeping_.load(base::relaxed) - 1, base::relaxed);
  }
  // Woken after all others.
  void move_to_end_locked(M* m) {
    if (m == last_m_) return;
    remove_locked(m);
    m->listed = true;
    m->previous_idle = last_m_;
    m->next_idle = nullptr;
    last_m_->next_idle = m;
    last_m_ = m;
    sleeping_.store(sleeping_.load(base::relaxed) + 1, base::relaxed);
  }
  M* pop_m_locked() {
    M* m = ms_;
    if (m != nullptr) remove_locked(m);
    return m;
  }

  int idle_threads() const { return sleeping_.load(base::relaxed); }

 private:
  base::Lock lock_;
  // guarded by lock_
  P* ps_ = nullptr;
  M* ms_ = nullptr;
  M* last_m_ = nullptr;
  base::Atomic<int> sleeping_{0};  // atomic, written under lock_: for statistics
};

}  // namespace magpie::sched
