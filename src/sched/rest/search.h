// search.h: no goroutine waits while a P sleeps. The M that publishes work and the M that goes to
// sleep agree in one word.
//
// Protocol  [search-or-sleep]
//
//   The word counts the idle Ps and the Ms that search. A searcher holds a P, has no goroutine, and
//   looks at all queues ("spins").
//
//   publisher:  puts the goroutine in a queue;  light_fence();  reads the word
//               no M searches and a P is idle?
//               -> counts one searcher and starts it                           (try_book_searcher)
//   sleeper:    idle + 1, and searching - 1 if it searched;  heavy_fence();
//               looks at every queue once more
//               something there?  -> takes an idle P back and searches                      (rest)
//   finder:     a searcher that found work: searching - 1;
//               then it acts as a publisher                                                 (stop)
//
// No loss   Publisher and sleeper each write, then read what the other wrote, with a full fence
//           between. So either the publisher sees the idle P or the searcher, or the sleeper sees
//           the goroutine. If the publisher left the goroutine to a searcher, the searcher will
//           rest (and look again) or find work (and pass it on). Every sleeper looks again, not
//           only the last searcher: a publisher may count a searcher, find no idle P after all, and
//           take the count back. The sleeper is on the list of sleeping threads before it looks. So
//           a P that finds no thread awake finds this one.
// Cheap     The publisher is the hot side. With membarrier its fence is free (base/fence.h). It
//           reads one word that changes only when Ps go idle or wake.
// Chain     A wake-up starts one searcher. When it finds work it starts the next. So there is no
//           herd.
// Bound     At most half as many searchers as busy Ps.
// Orders    [search-or-sleep] all changes are seq_cst read-modify-writes; reads after light_fence()
//           are relaxed.
// Proof     tests/model/search_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/fence.h"
#include "sched/policy.h"

namespace magpie::sched {

class Search {
 public:
  struct View {
    std::uint32_t searching;
    std::uint32_t idle;
  };

  View view() const {
    std::uint64_t word = word_.load(base::relaxed);  // relaxed: callers that need order fence
    return View{static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }

  // Call this after publishing work. True: one searcher was counted; the caller must start it, or
  // call stop(). Tries again if the word has changed meanwhile: perhaps an M has just taken one of
  // several idle Ps, but not to search.
  [[nodiscard]] bool try_book_searcher() {
    View now;
    do {
      if (!seems_to_need_searcher(now)) return false;
    } while (!try_count_searcher(now));
    return true;
  }

  // The second half of try_book_searcher(). False: the word has changed.
  [[nodiscard]] bool try_count_searcher(View seen) {
    std::uint64_t expected = pack(seen);
    return word_.compare_exchange_strong(expected, expected + kSearcher, base::seq_cst,
                                         base::relaxed);
  }

  // The first half of try_book_searcher(). False: nothing is owed. True: call try_book_searcher().
  [[nodiscard]] bool seems_to_need_searcher(View& now) const {
    // [search-or-sleep] between the publication and this read; other side: before_second_look()
    base::light_fence();
    now = view();
    return policy::needs_searcher(now);
  }

  // An M with a P and no work wants to search. False: enough other Ms search.
  [[nodiscard]] bool try_start(std::uint32_t procs) {
    View now = view();
    if (!policy::may_search(now, procs)) return false;
    word_.fetch_add(kSearcher, base::seq_cst);
    return true;
  }

  // Call this when a searcher found work, and then try_book_searcher(). Also call it when a booked
  // searcher never started because no P was idle: under the lock that showed that. An M that gives
  // a P up later also looks again later, and so finds the work that a publisher left to this
  // searcher. After the unlock that M could already have looked.
  void stop() { word_.fetch_sub(kSearcher, base::seq_cst); }

  // A P goes to the idle list; its holder was, or was not, searching. Next, without the list's
  // lock, the holder calls before_second_look() and looks at every queue.
  enum class Was { searching, not_searching };
  void rest(Was was) {
    word_.fetch_add(was == Was::searching ? kIdle - kSearcher : kIdle, base::seq_cst);
  }
  // [search-or-sleep] other side: try_book_searcher()
  void before_second_look() { base::heavy_fence(); }

  // A P that no M held goes to the idle list.
  void add_idle() { word_.fetch_add(kIdle, base::seq_cst); }

  // A P leaves the idle list, for a thread that is, or is not, already counted as a searcher.
  void remove_idle() { word_.fetch_sub(kIdle, base::seq_cst); }
  void remove_idle_add_searcher() { word_.fetch_sub(kIdle - kSearcher, base::seq_cst); }

 private:
  static constexpr std::uint64_t kSearcher = 1;
  static constexpr std::uint64_t kIdle = std::uint64_t{1} << 32;

  static std::uint64_t pack(View view) { return view.searching + (std::uint64_t{view.idle} << 32); }

  // atomic [search-or-sleep]: publishers, searchers and sleepers write, publishers read
  base::Atomic<std::uint64_t> word_{0};
};

}  // namespace magpie::sched
