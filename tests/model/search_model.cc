// Model of [search-or-sleep]: publishers, searchers and sleepers around the product's Search word.
//
// The model mirrors wake.cc (start_searcher), hand_off.cc (start_thread_for), find_work.cc (search)
// and rest.cc (rest) with the same locks. A queue is a number, changed by relaxed steps, so that
// only the protocol orders anything.
//
// Checked   When nobody does anything any more: no goroutine is in a queue while a P is idle,
//           nobody is counted as a searcher, and the word's idle Ps are those of the list.
//           Publishers hold their P for ever.
// Bounds    See main(): two or three threads; preemptions are bounded, as the full tree is too
//           large. There are exactly as many Ms as Ps, and no further thread can be had.
//
// Mutant MUTANT_NO_FENCE         publisher and sleeper miss each other
// Mutant MUTANT_NO_SECOND_LOOK   nobody looks again before he sleeps
// Mutant MUTANT_SEARCHERS_LOOK   only searchers look again, as in Go
// Mutant MUTANT_NO_CHAIN         who found something starts no further searcher
// Mutant MUTANT_SILENT_MOVE      goroutines move between queues without waking a searcher
// Mutant MUTANT_STOP_UNLOCKED    a searcher for whom no P is left is taken back without the lock
// Mutant MUTANT_SILENT_RETURN    an M that was to be handed a P is put back on the list without a
//                                look
// Mutant MUTANT_LISTED_LATE      an M gets on the list of sleepers only after its second look
// Mutant MUTANT_COUNTED_ONCE     a publisher tries only once to count a searcher
// Mutant MUTANT_MASK_LATE        the bit of a P is cleared after its holder has published
// Mutant MUTANT_MASK_BEFORE      a sleeper reads the bits before its fence
#include "model_run.h"

#include "sched/idle_mask.h"
#include "sched/rest/search.h"

namespace {

using magpie::base::relaxed;
using magpie::sched::IdleMask;
using magpie::sched::Search;
using model::chosen;

// A queue: only how many are in it. What a goroutine carries is run_queue_model's matter.
class Queue {
 public:
  void put(int count) { size_.fetch_add(count, relaxed); }
  bool take(int count) {
    int size = size_.load(relaxed);
    while (size >= count) {
      if (size_.compare_exchange_strong(size, size - count, relaxed, relaxed)) return true;
    }
    return false;
  }
  bool empty() const { return size_.load(relaxed) == 0; }
  int left() const { return size_.peek(); }

 private:
  model::Atomic<int> size_{0};
};

struct M {
  bool searching = false;
  rl::generic_event wake_up;
};

template <int threads, int queue_count, std::uint32_t procs>
struct Runtime {
  Search search;
  Queue queues[queue_count];
  rl::mutex lock;
  // guarded by lock
  int idle = 0;
  int sleeping[threads];
  int sleepers = 0;

  M ms[threads];
  // the model's own: threads take turns
  int awake = threads;
  bool over = false;

  Runtime() {
    for (M& m : ms) m.wake_up.init(false, false, RL_INFO);
  }
  ~Runtime() {
    for (M& m : ms) m.wake_up.deinit(RL_INFO);
  }

  // Before the threads start: an idle P; an M that sleeps, or does not exist yet.
  void add_idle_p() {
    ++idle;
    search.add_idle();
  }
  void add_sleeping(int m) {
    sleeping[sleepers++] = m;
    --awake;
  }

  // wake.cc
  void wake_searcher() {
    if (try_book_searcher()) start_searcher();
  }
  bool try_book_searcher() {
    if (!chosen<"MUTANT_COUNTED_ONCE">()) return search.try_book_searcher();
    Search::View now;
    return search.seems_to_need_searcher(now) && search.try_count_searcher(now);
  }
  void start_searcher() {
    lock.lock(RL_INFO);
    bool found = idle > 0;
    if (found) {
      --idle;
      search.remove_idle();
    }
    bool stop_unlocked = chosen<"MUTANT_STOP_UNLOCKED">();
    if (!found && !stop_unlocked) search.stop();
    lock.unlock(RL_INFO);
    if (!found && stop_unlocked) search.stop();
    if (found) start_thread();
  }
  void start_thread() {
    lock.lock(RL_INFO);
    if (sleepers == 0) {
      search.stop();
      ++idle;
      search.add_idle();
      lock.unlock(RL_INFO);
      return;
    }
    M& m = ms[sleeping[--sleepers]];
    lock.unlock(RL_INFO);
    m.searching = true;
    ++awake;
    m.wake_up.set(RL_INFO);
  }

  // find_work.cc
  bool work_is_visible() {
    for (Queue& queue : queues) {
      if (!queue.empty()) return true;
    }
    return false;
  }
  bool steal() {
    for (Queue& queue : queues) {
      if (queue.take(1)) return true;
    }
    return false;
  }
  bool find(M& m) {
    if (!m.searching) m.searching = search.try_start(procs);
    if (!m.searching || !steal()) return false;
    m.searching = false;
    search.stop();
    if (!chosen<"MUTANT_NO_CHAIN">()) wake_searcher();
    return true;
  }
  // True: it has a P again.
  bool rest(int index) {
    M& m = ms[index];
    bool was_searching = m.searching;
    lock.lock(RL_INFO);
    ++idle;
    m.searching = false;
    if (!chosen<"MUTANT_LISTED_LATE">()) sleeping[sleepers++] = index;
    search.rest(was_searching ? Search::Was::searching : Search::Was::not_searching);
    lock.unlock(RL_INFO);
    search.before_second_look();
    return look_again_or_sleep(index, was_searching);
  }
  bool look_again_or_sleep(int index, bool was_searching) {
    M& m = ms[index];
    bool looks = true;
    if (chosen<"MUTANT_NO_SECOND_LOOK">()) looks = false;
    if (chosen<"MUTANT_SEARCHERS_LOOK">()) looks = was_searching;
    bool again = looks && work_is_visible();
    lock.lock(RL_INFO);
    if (chosen<"MUTANT_LISTED_LATE">()) sleeping[sleepers++] = index;
    int at = 0;
    while (at < sleepers && sleeping[at] != index) ++at;
    if (again && idle > 0 && at < sleepers) {
      --sleepers;
      for (; at < sleepers; ++at) sleeping[at] = sleeping[at + 1];
      --idle;
      search.remove_idle_add_searcher();
      lock.unlock(RL_INFO);
      m.searching = true;
      return true;
    }
    lock.unlock(RL_INFO);
    return sleep(m);
  }
  // False: all is over.
  bool sleep(M& m) {
    leave();
    m.wake_up.wait(false, false, RL_INFO);
    return !over;
  }

  // An M whose goroutines end at once: finds work until it sleeps for good.
  void work(int index) {
    do {
      while (find(ms[index])) {
      }
    } while (rest(index));
  }
  // An M whose first goroutine runs for ever.
  void work_once(int index) {
    do {
      if (find(ms[index])) return leave();
    } while (rest(index));
  }
  // False: all is over.
  bool start_asleep(int index) {
    ms[index].wake_up.wait(false, false, RL_INFO);
    return !over;
  }

  // sysmon_taking.cc: takes an M off the list to hand it a P, does not get the P, and puts the M
  // back.
  void borrow_in_vain() {
    lock.lock(RL_INFO);
    if (sleepers == 0) return lock.unlock(RL_INFO);
    int borrowed = sleeping[--sleepers];
    lock.unlock(RL_INFO);
    lock.lock(RL_INFO);
    sleeping[sleepers++] = borrowed;
    lock.unlock(RL_INFO);
    if (!chosen<"MUTANT_SILENT_RETURN">() && work_is_visible()) wake_searcher();
  }

  // bound.cc, take_idle_p(): an M that comes back takes an idle P, and runs its goroutine for ever.
  void come_back() {
    lock.lock(RL_INFO);
    if (idle > 0) {
      --idle;
      search.remove_idle();
    }
    lock.unlock(RL_INFO);
  }

  void publish(int queue) {
    queues[queue].put(1);
    wake_searcher();
  }

  // One thread less does anything; the last checks and lets the sleepers end.
  void leave() {
    if (--awake != 0) return;
    over = true;
    int waiting = 0;
    for (Queue& queue : queues) waiting += queue.left();
    RL_ASSERT(waiting == 0 || idle == 0);
    for (M& m : ms) m.wake_up.set(RL_INFO);
  }

  void check_word() {
    Search::View view = search.view();
    RL_ASSERT(view.searching == 0);
    RL_ASSERT(view.idle == static_cast<unsigned>(idle));
  }
};

// One publishes while the other finds nothing and goes to sleep.
struct PublishOrSleep : model::Scenario<2> {
  Runtime<2, 1, 2> rt;
  void thread(unsigned index) override {
    if (index == 0) {
      rt.publish(0);
      rt.leave();
    } else {
      rt.work(1);
    }
  }
  void after() override { rt.check_word(); }
};

// Two goroutines that run for ever need two Ps: the second publication may be left to the first
// searcher.
struct Chain : model::Scenario<3> {
  Runtime<3, 1, 3> rt;
  void before() override {
    rt.add_idle_p();
    rt.add_idle_p();
    for (int m : {1, 2}) rt.add_sleeping(m);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      rt.publish(0);
      rt.publish(0);
      rt.leave();
    } else if (rt.start_asleep(static_cast<int>(index))) {
      rt.work_once(static_cast<int>(index));
    }
  }
  void after() override { rt.check_word(); }
};

// One M takes two goroutines from the global queue, 0, and puts one in its own, 1, while the other
// goes to sleep.
struct Move : model::Scenario<2> {
  Runtime<2, 2, 2> rt;
  void before() override { rt.queues[0].put(2); }
  void thread(unsigned index) override {
    if (index == 0) {
      if (rt.queues[0].take(2)) {
        rt.queues[1].put(1);
        if (!chosen<"MUTANT_SILENT_MOVE">()) rt.wake_searcher();
      }
      rt.leave();
    } else {
      rt.work_once(1);
    }
  }
  void after() override { rt.check_word(); }
};

// A publisher counts a searcher and then finds that the idle P is gone, for its holder looked
// again. The other publisher, a plain thread, may have left its goroutine to that searcher.
struct Transient : model::Scenario<3> {
  Runtime<3, 2, 2> rt;
  void before() override {
    rt.add_idle_p();
    rt.sleeping[rt.sleepers++] = 2;
  }
  void thread(unsigned index) override {
    if (index <= 1) {
      rt.publish(static_cast<int>(index));
      rt.leave();
    } else if (rt.look_again_or_sleep(2, true)) {
      rt.work(2);
    }
  }
  void after() override { rt.check_word(); }
};

// Sysmon has just got hold of the M that goes to sleep.
struct Borrowed : model::Scenario<3> {
  Runtime<3, 1, 2> rt;
  void thread(unsigned index) override {
    if (index == 0) {
      rt.publish(0);
      rt.leave();
    } else if (index == 1) {
      rt.work(1);
    } else {
      rt.borrow_in_vain();
      rt.leave();
    }
  }
  void after() override { rt.check_word(); }
};

// One of two idle Ps is taken by an M that does not search, while the publisher counts a searcher
// for the other.
struct TakenMeanwhile : model::Scenario<3> {
  Runtime<3, 1, 4> rt;
  void before() override {
    rt.add_idle_p();
    rt.add_idle_p();
    rt.add_sleeping(2);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      rt.publish(0);
      rt.leave();
    } else if (index == 1) {
      rt.come_back();
      rt.leave();
    } else if (rt.start_asleep(2)) {
      rt.work(2);
    }
  }
  void after() override { rt.check_word(); }
};

// An M takes the idle P 1 and publishes with it, in queue 1, while the holder of P 0 goes to sleep
// and passes idle Ps by.
struct PassedBy : model::Scenario<2> {
  Search search;
  IdleMask mask;
  Queue queues[2];
  rl::mutex lock;
  bool left_to_sleeper = false, sleeper_saw = false;

  void before() override {
    search.add_idle();
    mask.set(1);
  }
  void thread(unsigned index) override { index == 0 ? sleep() : publish(); }

  void sleep() {
    bool is_idle = chosen<"MUTANT_MASK_BEFORE">() && mask.next_busy(1, 2) == 2;
    lock.lock(RL_INFO);
    mask.set(0);
    search.rest(Search::Was::not_searching);
    lock.unlock(RL_INFO);
    search.before_second_look();
    if (!chosen<"MUTANT_MASK_BEFORE">()) is_idle = mask.next_busy(1, 2) == 2;
    sleeper_saw = !is_idle && !queues[1].empty();
  }
  void publish() {
    lock.lock(RL_INFO);
    if (!chosen<"MUTANT_MASK_LATE">()) mask.clear(1);
    search.remove_idle();
    lock.unlock(RL_INFO);
    queues[1].put(1);
    left_to_sleeper = !search.try_book_searcher();
    if (chosen<"MUTANT_MASK_LATE">()) mask.clear(1);
  }
  // What was published is seen by the sleeper, or a searcher is booked for it.
  void after() override { RL_ASSERT(sleeper_saw || !left_to_sleeper); }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<PublishOrSleep>("publish or sleep", model::bounded(4))
      .explore<Move>("move", model::bounded(4))
      .explore<Chain>("chain", model::bounded(3))
      .explore<Borrowed>("borrowed", model::bounded(3))
      .explore<TakenMeanwhile>("taken meanwhile", model::bounded(3))
      .explore<PassedBy>("passed by", model::bounded(4))
      .explore<Transient>("transient searcher", model::random(700'000))
      .explore<Transient>("transient searcher", model::bounded(2))
      .report();
}
