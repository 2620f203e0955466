// idle.h: Ps that nobody holds, Ms that sleep or are about to, and how many Ms search.
//
// Two last-in-first-out lists under one lock, so that the warmest is woken first and the others
// stay asleep. Where Ps have distances, what is near the waker is warmer. The word of
// [search-or-sleep] counts the idle Ps and the searchers. It changes together with the lists, here
// and nowhere else, so a caller that holds the lock may trust both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "sched/core/m.h"
#include "sched/core/p.h"
#include "sched/core/p_table.h"
#include "sched/idle_mask.h"
#include "sched/rest/search.h"
#include "sched/victims.h"

namespace magpie::sched {

class Idle {
 public:
  Idle(Search& search, const PTable& all) : search_(search), all_(all) {}

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

  // An idle P for a thread that goes on to run, or null. Here and below `near` is the P that it
  // should be near to; null: any.
  [[nodiscard]] P* take_p_locked(const P* near) MAGPIE_REQUIRES(lock_) {
    P* p = unlist_p_locked(near);
    if (p != nullptr) search_.remove_idle();
    return p;
  }

  // An idle P for a searcher that was booked (try_book_searcher), or null: then it is booked no
  // more. All Ps are held after all, and an M that gives one up from now on looks at the queues.
  [[nodiscard]] P* take_p_for_booked_locked(const P* near) MAGPIE_REQUIRES(lock_) {
    P* p = take_p_locked(near);
    if (p == nullptr) search_.stop();
    return p;
  }

  // An idle P for m, which is on the list and searches from now on; or null, and m stays there.
  [[nodiscard]] P* take_p_to_search_locked(M* m) MAGPIE_REQUIRES(lock_) {
    P* p = unlist_p_locked(m->rest.last_p);
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
  // `p` is the P that it will hold; null: any.
  M* take_m_locked(const P* p) MAGPIE_REQUIRES(lock_) {
    M* m = p != nullptr && !p->home.is_flat ? m_near_locked(*p) : ms_;
    if (m != nullptr) remove_locked(m);
    return m;
  }

  const IdleMask& mask() const { return mask_; }

  int idle_threads() const { return count_.load(base::relaxed); }

 private:
  void list_locked(P* p) MAGPIE_REQUIRES(lock_) {
    p->state.store(PState::idle, base::relaxed);  // relaxed: for readers of statistics
    p->free_cpu = -1;
    p->previous_idle = nullptr;
    p->next_idle = ps_;
    if (ps_ != nullptr) ps_->previous_idle = p;
    ps_ = p;
    mask_.set(static_cast<std::uint32_t>(p->index));  // its queues are empty
  }
  P* unlist_p_locked(const P* near) MAGPIE_REQUIRES(lock_) {
    P* p = near != nullptr && !near->home.is_flat ? p_near_locked(*near) : ps_;
    if (p == nullptr) return nullptr;
    (p->previous_idle == nullptr ? ps_ : p->previous_idle->next_idle) = p->next_idle;
    if (p->next_idle != nullptr) p->next_idle->previous_idle = p->previous_idle;
    mask_.clear(static_cast<std::uint32_t>(p->index));  // before its holder can publish
    p->state.store(PState::running, base::relaxed);
    return p;
  }

  P* p_near_locked(const P& near) MAGPIE_REQUIRES(lock_) {
    std::uint32_t found = idle_near(near.home, static_cast<std::uint32_t>(near.index), mask_);
    return found == kNoP ? ps_ : all_.in_use()[found];
  }
  // Of the few that rested last: the M that held this P, else an M of the same node, else the last.
  M* m_near_locked(const P& p) MAGPIE_REQUIRES(lock_) {
    constexpr int kLooks = 8;
    M* of_node = nullptr;
    int looks = kLooks;
    for (M* m = ms_; m != nullptr && looks-- != 0; m = m->rest.next) {
      const P* last = m->rest.last_p;
      if (last == &p) return m;
      bool is_near = last != nullptr && p.home.node.has(static_cast<std::uint32_t>(last->index));
      if (is_near && of_node == nullptr && !m->rest.in_poller) of_node = m;
    }
    return of_node != nullptr ? of_node : ms_;
  }
  void change_count_locked(int by) MAGPIE_REQUIRES(lock_) {
    count_.store(count_.load(base::relaxed) + by, base::relaxed);
  }

  Search& search_;
  const PTable& all_;
  base::Lock lock_;
  IdleMask mask_;  // of ps_
  P* ps_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  M* ms_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  M* last_m_ MAGPIE_GUARDED_BY(lock_) = nullptr;
  base::Atomic<int> count_{0};  // atomic, written under lock_: for statistics
};

}  // namespace magpie::sched
