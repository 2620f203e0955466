// Model of [timer-duty]: timers are armed while threads go to sleep, have the timer duty, wake up
// and hand it on.
//
// The model mirrors timers.cc (arm), fire.cc (see_to_timer), wake.cc (start_searcher) and rest.cc
// (rest) with the same lock. The earliest timer of a P is a number, changed by relaxed steps, so
// that only the protocol orders anything.
//
// Checked   When nobody does anything any more and a P is idle: somebody sleeps until the earliest
//           timer, or until an earlier time. Armers hold their P for ever and never look at their
//           timers.
// Bounds    See main(): two or three threads, bounded preemptions. A keeper's time comes at any
//           moment after it took the timer duty, also when it is just being woken by hand.
//
// Mutant MUTANT_NO_FENCE      armer and sleeper miss each other
// Mutant MUTANT_DUTY_FIRST    a sleeper decides on the timer duty before it is counted as idle
// Mutant MUTANT_NEVER_LEFT    a keeper that woke up leaves its time in the word
// Mutant MUTANT_NO_CHAIN      a keeper that found work starts no further searcher
// Mutant MUTANT_ARMER_IDLE    an armer never wakes anybody
#include "model_run.h"

#include <algorithm>

#include "sched/rest/search.h"
#include "sched/rest/timer_duty.h"

namespace {

using magpie::base::relaxed;
using magpie::sched::Search;
using magpie::sched::TimerDuty;
using model::chosen;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSoon = 5, kLater = 10;

template <int threads>
struct Runtime {
  Search search;
  TimerDuty timer_duty;
  model::Atomic<std::int64_t> earliest[2] = {{kNever}, {kNever}};
  rl::mutex lock;
  // guarded by lock
  int idle = 0;
  bool listed[threads] = {};

  rl::generic_event wake_up[threads];
  // the model's own: threads take turns
  std::int64_t sleeps_until[threads];
  int awake = threads;
  bool over = false;

  Runtime() {
    for (auto& event : wake_up) event.init(false, false, RL_INFO);
    for (auto& time : sleeps_until) time = kNever;
  }
  ~Runtime() {
    for (auto& event : wake_up) event.deinit(RL_INFO);
  }

  void arm(int set, std::int64_t when) {
    earliest[set].store(when, relaxed);
    if (!chosen<"MUTANT_ARMER_IDLE">() && !timer_duty.covers(when)) wake_searcher();
  }
  std::int64_t next_timer() {
    return std::min(earliest[0].load(relaxed), earliest[1].load(relaxed));
  }

  void wake_searcher() {
    if (!search.try_book_searcher()) return;
    lock.lock(RL_INFO);
    int sleeper = 0;
    while (sleeper < threads && !listed[sleeper]) ++sleeper;
    if (idle == 0 || sleeper == threads) {
      search.stop();
      lock.unlock(RL_INFO);
      return;
    }
    --idle;
    search.remove_idle();
    listed[sleeper] = false;
    lock.unlock(RL_INFO);
    ++awake;
    wake_up[sleeper].set(RL_INFO);
  }

  // Its time has come, or it was woken: it has a P and searches. False: it was handed none and must
  // sleep.
  bool get_up(int m) {
    lock.lock(RL_INFO);
    bool can = listed[m] && idle > 0;
    if (can) {
      --idle;
      listed[m] = false;
      search.remove_idle_add_searcher();
    }
    lock.unlock(RL_INFO);
    return can;
  }

  // An M without work that searches. It sleeps for ever in the end, or `runs_for_ever` what its
  // timer made ready.
  void rest(int m, bool runs_for_ever) {
    for (;;) {
      std::int64_t next = kNever;
      bool keeps = false;
      auto take_duty = [&] {
        next = next_timer();
        keeps = next != kNever && timer_duty.take(next);
      };
      bool duty_first = chosen<"MUTANT_DUTY_FIRST">();
      if (duty_first) take_duty();
      lock.lock(RL_INFO);
      ++idle;
      listed[m] = true;
      search.rest(Search::Was::searching);
      lock.unlock(RL_INFO);
      search.before_second_look();
      if (!duty_first) take_duty();
      if (keeps && rl::rand(2) == 1) {
        end_duty(next);
        if (!get_up(m)) {
          sleep(m, kNever);
          if (over) return;
          continue;
        }
        if (!fire(next)) continue;  // searches, finds nothing, rests again
        search.stop();
        if (!chosen<"MUTANT_NO_CHAIN">()) wake_searcher();
        if (runs_for_ever) return end();
        if (!search.try_start(threads)) search_anyway();
        continue;
      }
      sleep(m, keeps ? next : kNever);
      if (over) return;
      if (keeps) end_duty(next);
    }
  }
  void sleep(int m, std::int64_t until) {
    sleeps_until[m] = until;
    end();
    wake_up[m].wait(false, false, RL_INFO);
    if (!over) sleeps_until[m] = kNever;
  }
  void end_duty(std::int64_t when) {
    if (!chosen<"MUTANT_NEVER_LEFT">()) timer_duty.end(when);
  }
  // The timer of that time, if it is still there.
  bool fire(std::int64_t when) {
    for (auto& set : earliest) {
      std::int64_t expected = when;
      if (set.compare_exchange_strong(expected, kNever, relaxed, relaxed)) return true;
    }
    return false;
  }
  // Enough others search: in the product it rests without having searched. Here every rest is a
  // searcher's.
  void search_anyway() { search.remove_idle_add_searcher(), search.add_idle(); }

  // One thread less does anything; the last lets the sleepers end.
  void end() {
    if (--awake != 0) return;
    over = true;
    for (auto& event : wake_up) event.set(RL_INFO);
  }

  void check() {
    std::int64_t next = next_timer();
    std::int64_t awake_at = *std::min_element(sleeps_until, sleeps_until + threads);
    RL_ASSERT(idle == 0 || next == kNever || awake_at <= next);
  }
};

// One arms while the other goes to sleep.
struct ArmOrSleep : model::Scenario<2> {
  Runtime<2> rt;
  void before() override { rt.search.remove_idle_add_searcher(), rt.search.add_idle(); }
  void thread(unsigned index) override {
    if (index == 0) {
      rt.arm(0, kLater);
      rt.end();
    } else {
      rt.rest(1, false);
    }
  }
  void after() override { rt.check(); }
};

// A keeper's timer comes, and it goes to sleep again, while another is armed that it would have
// covered.
struct ArmWhileKept : model::Scenario<2> {
  Runtime<2> rt;
  void before() override {
    rt.search.remove_idle_add_searcher(), rt.search.add_idle();
    rt.earliest[1].store(kSoon, relaxed);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      rt.arm(0, kLater);
      rt.end();
    } else {
      rt.rest(1, false);
    }
  }
  void after() override { rt.check(); }
};

// The keeper's timer makes a goroutine ready that runs for ever: another has to take over the timer
// duty.
struct HandOn : model::Scenario<3> {
  Runtime<3> rt;
  void before() override {
    for (int i = 0; i < 2; ++i) rt.search.remove_idle_add_searcher(), rt.search.add_idle();
    rt.earliest[1].store(kSoon, relaxed);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      rt.arm(0, kLater);
      rt.end();
    } else {
      rt.rest(static_cast<int>(index), true);
    }
  }
  void after() override { rt.check(); }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<ArmOrSleep>("arm or sleep", model::bounded(5))
      .explore<ArmWhileKept>("arm while the timer duty is kept", model::bounded(4))
      .explore<HandOn>("hand the timer duty on", model::bounded(2))
      .explore<HandOn>("hand the timer duty on", model::random(200'000))
      .report();
}
