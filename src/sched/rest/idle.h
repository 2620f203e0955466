// idle.h: Ps that nobody holds, Ms that sleep or are about to, and how many Ms search.
//
// Two last-in-first-out lists under one lock, so that the warmest is woken first and the others
// stay asleep. The word of [search-or-sleep] counts the idle Ps and the searchers. It changes
// together with the lists, here and nowhere else, so a caller that holds the lock may trust both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "sched/core/m.h"
#include "sched/core/p.h"
#include "sched/rest/search.h"

namespace magpie::sched {

class Idle {
 public:
  explicit Idle(Search& search) : search_(search) {}

  base::Lock& lock() MAGPIE_RETURNS_LOCK(lock_) { return lock_; }

  // ---- Ps, under the lock

  // A P that nobody holds becomes idle.
  void give_p_locked(P* p) MAGPIE_REQUIRES(lock_) {
    list_locked(p);
    search_.add_idle();
  }

  // An M gives its P up, is on the list of sleeping Ms from now on, and searches no more.
  // The caller then looks at every queue once more, without the lock.
  void rest_locked(P* p, M* m) MAGPIE_REQUIRES(lock_) {
    list_locked(p);
    list_locked(m);
    search_.rest(m->searching ? Search::Was::searching : Search::Was::not_searching);
    m->searching = false;
  }

  // An idle P for a thread that goes on to run, or null.
  [[nodiscard]] P* take_p_locked() MAGPIE_REQUIRES(lock_) {
    P* p = unlist_p_locked();
    if (p != nullptr) search_.remove_idle();
    return p;
  }

  // An idle P for a searcher that was booked (try_book_searcher), or null: then it is booked no
  // more. All Ps are held after all, and an M that gives one up from now on looks at the queues.
  [[nodiscard]] P* take_p_for_booked_locked() MAGPIE_REQUIRES(lock_) {
    P* p = take_p_locked();
    if (p == nullptr) search_.stop();
    return p;
  }

  // An idle P for m, which is on the list and searches from now on; or null, and m stays there.
  [[nodiscard]] P* take_p_to_search_locked(M* m) MAGPIE_REQUIRES(lock_) {
    P* p = unlist_p_locked();
    if (p == nullptr) return nullptr;
    remove_locked(m);
    search_.remove_idle_add_searcher();
    m->searching = true;
    return p;
  }

  // A searcher that was booked, or handed a P, does not come to be.
  void unbook_searcher_locked() MAGPIE_REQUIRES(lock_) { search_.stop(); }

  // ---- searching, without the lock

  // An M with a P and no work. False: enough others search.
  [[nodiscard]] bool try_begin_search(M* m, std::uint32_t procs) {
    if (!search_.try_start(procs)) return false;
    m->searching = true;
    return true;
  }
  // The M has found work; the caller wakes the next searcher. Or it gives up its P without resting.
  void end_search(M* m) {
    m->searching = false;
    search_.stop();
  }

  // ---- Ms, under the lock

  void list_locked(M* m) MAGPIE_REQUIRES(lock_) {
    M::Rest& its = m->rest;
    its.listed = true;
    its.previous = nullptr;
    its.next = ms_;
    (ms_ != nullptr ? ms_->rest.previous : last_m_) = m;
    ms_ = m;
    change_count_locked(1);
  }
  void remove_locked(M* m) MAGPIE_REQUIRES(lock_) {
    M::Rest& its = m->rest;
    its.listed = false;
    (its.previous == nullptr ? ms_ : its.previous->rest.next) = its.next;
    (its.next == nullptr ? last_m_ : its.next->rest.previous) = its.previous;
    change_count_locked(-1);
  }
  // Woken after all others.
  void move_to_end_locked(M* m) MAGPIE_REQUIRES(lock_) {
    if (m == last_m_) return;
    remove_locked(m);
    M::Rest& its = m->rest;
    its.listed = true;
    its.previous = last_m_;
    its.next = nullptr;
    last_m_->rest.next = m;
    last_m_ = m;
    change_count_locked(1);
  }
  M* take_m_locked() MAGPIE_REQUIRES(lock_) {
    M* m = ms_;
    if (m != nullptr) remove_locked(m);
    return m;
  }

  int idle_threads() const { return count_.load(base::relaxed); }

 private:
  void list_locked(P* p) MAGPIE_REQUIRES(lock_) {
    p->state.store(PState::idle, base::relaxed);  // relaxed: for readers of statistics
    p->free_cpu = -1;
    p->next_idle = ps_;
    ps_ = p;
  }
  P* unlist_p_locked() MAGPIE_REQUIRES(lock_) {
    P* p = ps_;
    if (p != nullptr) {
      ps_ = p->next_idle;
      p->state.store(PState::running, base::relaxed);
    }
    return p;
  }
  void change_count_locked(int by) MAGPIE_REQUIRES(lock_) {
    count_.store(count_.load(base::relaxed) + by, base::relaxed);
  }

  Search& search_;
  base::Lock lock_;
  P* ps_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  M* ms_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  M* last_m_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  base::Atomic<int> count_{0};  // atomic, written under lock_: for statistics
};

}  // namespace magpie::sched
