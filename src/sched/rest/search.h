// search.h: no goroutine waits while a P sleeps. Who publishes work and who goes to sleep agree in one word.
//
// Protocol  [search-or-sleep]
//
//   The word counts the Ps that are idle and the Ms that search ("spin": hold a P, have nothing, look at all
//   the queues).
//
//   publisher:  put the goroutine in a queue;  light_fence();      read the word
//               nobody searches and a P is idle?  -> count one searcher and start it       (try_book_searcher)
//   sleeper:    idle + 1, and searching - 1 if it searched;  heavy_fence();  look at every queue once more
//               something there?  -> take an idle P back and search                        (rest)
//   finder:     a searcher that found work is one less; it then acts as a publisher        (stop)
//
// No loss   Publisher and sleeper each write, then read what the other wrote, with a full fence between. So
//           either the publisher sees the idle P or the searcher, or the sleeper sees the goroutine. If the
//           publisher left it to a searcher, that one will rest (and look again) or find (and pass it on).
//           Every sleeper looks again, not only the last searcher: a publisher may count one transiently,
//           find no idle P after all, and take it back. It is on the list of sleeping threads before it looks,
//           so that a P which finds no thread awake finds this one.
// Cheap     The publisher is the hot side: with membarrier its fence is free (base/fence.h). It reads one
//           word that changes only when Ps go idle or wake.
// Chain     A wake-up starts one searcher; when that finds work it starts the next. No herd.
// Bound     At most half as many searchers as busy Ps.
// Orders    [search-or-sleep] all changes are seq_cst read-modify-writes; reads after light_fence() relaxed.
// Proof     tests/model/search_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/fence.h"

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

  // After publishing work. True: one searcher was counted; the caller must start it, or call stop().
  // Again if the word has changed meanwhile: perhaps an M has just taken one of several idle Ps to go on, not to search.
  [[nodiscard]] bool try_book_searcher() {
    View now;
    do {
      if (!seems_to_need_searcher(now)) return false;
    } while (!try_count_searcher(now));
    return true;
  }

  // The second half. False: the word is not what it was.
  [[nodiscard]] bool try_count_searcher(View seen) {
    std::uint64_t expected = pack(seen);
    return word_.compare_exchange_strong(expected, expected + kSearcher, base::seq_cst,
                                         base::relaxed);
  }

  // The first half of it. False: nothing is owed. True: find out by try_book_searcher().
  [[nodiscard]] bool seems_to_need_searcher(View& now) const {
    // [search-or-sleep] between the publication and this read; other side: before_second_look()
    base::light_fence();
    now = view();
    return now.searching == 0 && now.idle != 0;
  }

  // A thread with a P and no work wants to search. False: enough others do.
  [[nodiscard]] bool try_start(std::uint32_t procs) {
    View now = view();
    if (2 * now.searching >= procs - now.idle) return false;
    word_.fetch_add(kSearcher, base::seq_cst);
    return true;
  }

  // A searcher found work: call try_book_searcher() then. Or it never came to be, as no P was idle: call this
  // under the lock that showed it. Who gives a P up after that looks again after that too, and so finds what
  // a publisher left to this searcher; after the unlock it could have looked already.
  void stop() { word_.fetch_sub(kSearcher, base::seq_cst); }

  // A P goes to the idle list; its holder was, or was not, searching. Then, without the list's lock,
  // before_second_look() and a look at every queue.
  enum class Was { searching, not_searching };
  void rest(Was was) {
    word_.fetch_add(was == Was::searching ? kIdle - kSearcher : kIdle, base::seq_cst);
  }
  void before_second_look() {
    base::heavy_fence();
  }  // [search-or-sleep] other side: try_book_searcher()

  // A P that nobody held goes there.
  void add_idle() { word_.fetch_add(kIdle, base::seq_cst); }

  // A P leaves the idle list, for a thread that is, or is not, already counted as a searcher.
  void remove_idle() { word_.fetch_sub(kIdle, base::seq_cst); }
  void remove_idle_add_searcher() { word_.fetch_sub(kIdle - kSearcher, base::seq_cst); }

 private:
  static constexpr std::uint64_t kSearcher = 1;
  static constexpr std::uint64_t kIdle = std::uint64_t{1} << 32;

  static std::uint64_t pack(View view) { return view.searching + (std::uint64_t{view.idle} << 32); }

  // atomic [search-or-sleep]: written by whoever changes its own state, read by publishers
  base::Atomic<std::uint64_t> word_{0};
};

}  // namespace magpie::sched
