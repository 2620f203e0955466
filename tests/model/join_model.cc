// Model of [join]
// Model of [claim]
//
// A joiner or a detacher meets the end of a goroutine, and the joiner meets those who dequeue it.
// The record, the result, and the saved context of who sleeps are plain variables: Relacy reports
// accesses that are not ordered. Freeing the record writes it, so any use that may come later is
// such a report.
//
// Checked   The body runs once, the record is freed once, the joiner goes on once and sees the
//           result, and who resumes a goroutine sees its saved context.
// Bounds    Every interleaving of two threads; of three where the claimed goroutine blocks
//           or is stopped.
//
// Mutant MUTANT_RELAXED_RELEASE   neither result nor context is published
// Mutant MUTANT_RELAXED_ACQUIRE   neither is seen
// Mutant MUTANT_BLIND_EXCHANGE    commit, detach and claim do not look who came first
// Mutant MUTANT_WITHDRAWS_EARLY   a joiner is resumed before it has told that it waits
// Mutant MUTANT_UNMARKED          the second who withdraws it is not told of the first
#include "model_run.h"

#include "sched/core/join_word.h"

namespace {

using magpie::base::acquire;
using magpie::base::release;
using magpie::sched::ClaimWord;
using magpie::sched::JoinWord;
using magpie::sched::WithdrawnMark;

// A goroutine and its joiner.
struct Pair {
  JoinWord join;
  ClaimWord claim;
  rl::var<int> record;  // 1: live, 0: free
  rl::var<int> result;
  rl::var<int> context;  // of the joiner, or of the claimed goroutine with the joiner below it
  int ran = 0, freed = 0, joined = 0;  // the model's own: threads take turns

  Pair() {
    record(RL_INFO) = 1;
    result(RL_INFO) = 0;
    context(RL_INFO) = 0;
  }

  void touch() { RL_ASSERT(record(RL_INFO) == 1); }

  void free_record() {
    touch();
    record(RL_INFO) = 0;
    RL_ASSERT(++freed == 1);
  }

  void run_body() {
    touch();
    RL_ASSERT(++ran == 1);
    result(RL_INFO) = 7;
  }

  // The joiner's way out, on whichever thread: takes the result, then is through with the record.
  void go_on() {
    RL_ASSERT(++joined == 1);
    touch();
    RL_ASSERT(result(RL_INFO) == 7);
    if (claim.retire()) free_record();
  }

  // loop.cc: the goroutine has ended.
  void finish() {
    touch();
    void* waiter = nullptr;
    switch (join.finish(waiter)) {
      case JoinWord::Owes::nothing:
        return;
      case JoinWord::Owes::wake_waiter:
        RL_ASSERT(waiter == this);
        RL_ASSERT(context(RL_INFO) == 1);
        return go_on();
      case JoinWord::Owes::free_record:
        return free_record();
    }
  }

  // The joiner waits for somebody else to run it.
  void wait() {
    if (!join.is_done()) {
      context(RL_INFO) = 1;           // its registers are saved: park's promise to commit
      if (join.commit(this)) return;  // whoever finishes it goes on for us
    }
    go_on();
  }

  // queues.cc: what the one who dequeued an entry does.
  template <class Resumed>
  void meet_entry(Resumed resumed) {
    switch (claim.meet_entry()) {
      case ClaimWord::Fate::run:
        return resumed();
      case ClaimWord::Fate::drop:
        return;
      case ClaimWord::Fate::free_record:
        return free_record();
    }
  }

  void check_end() {
    RL_ASSERT(ran == 1);
    RL_ASSERT(freed == 1);
  }
};

// One joins, one runs it to the end.
struct JoinAndFinish : model::Scenario<2> {
  Pair pair;
  void before() override { pair.claim.take_removed(); }  // whoever dequeued it has taken it
  void thread(unsigned index) override {
    if (index == 0) {
      pair.wait();
    } else {
      pair.run_body();
      pair.finish();
    }
  }
  void after() override {
    pair.check_end();
    RL_ASSERT(pair.joined == 1);
  }
};

// One joins until its context is over, one runs it to the end, one cancels. That the record stays
// until the canceller has looked is [cancel]'s.
struct JoinOrCancel : model::Scenario<3> {
  Pair pair;
  WithdrawnMark mark;
  int cancelled = 0;  // the model's own
  void before() override { pair.claim.take_removed(); }
  void thread(unsigned index) override {
    if (index == 0) {
      pair.context(RL_INFO) = 1;
      if (!pair.join.commit(&pair)) pair.go_on();
    } else if (index == 1) {
      pair.run_body();
      pair.finish();
    } else {
      cancel();
    }
  }
  void cancel() {
    for (;;) {
      switch (pair.join.withdraw(&pair, mark)) {
        case JoinWord::Withdrawn::yes:
          return resume();
        case JoinWord::Withdrawn::no_woken:
          return;
        case JoinWord::Withdrawn::not_yet:
          if (model::chosen<"MUTANT_WITHDRAWS_EARLY">()) return resume();
          rl::yield(1, RL_INFO);
      }
    }
  }
  // The joiner goes on, and lets the goroutine go.
  void resume() {
    RL_ASSERT(++cancelled == 1);
    RL_ASSERT(pair.context(RL_INFO) == 1);
    if (!pair.join.detach()) pair.free_record();
  }
  void after() override {
    pair.check_end();
    RL_ASSERT(pair.joined + cancelled == 1);
  }
};

// One joins until its context is over, a canceller and a timer both find that it is. Nobody ends
// the goroutine meanwhile.
struct TwoWithdraw : model::Scenario<3> {
  JoinWord join;
  WithdrawnMark mark;
  rl::var<int> context;
  int resumed = 0;  // the model's own
  void before() override { context(RL_INFO) = 0; }
  void thread(unsigned index) override {
    if (index == 0) {
      context(RL_INFO) = 1;
      RL_ASSERT(join.commit(this));
    } else {
      withdraw();
    }
  }
  void withdraw() {
    WithdrawnMark own;
    WithdrawnMark& seen = model::chosen<"MUTANT_UNMARKED">() ? own : mark;
    for (;;) {
      switch (join.withdraw(this, seen)) {
        case JoinWord::Withdrawn::yes:
          RL_ASSERT(++resumed == 1);
          RL_ASSERT(context(RL_INFO) == 1);
          return;
        case JoinWord::Withdrawn::no_woken:
          return;
        case JoinWord::Withdrawn::not_yet:
          rl::yield(1, RL_INFO);
      }
    }
  }
  void after() override { RL_ASSERT(resumed == 1); }
};

// One lets it go, one runs it to the end.
struct DetachAndFinish : model::Scenario<2> {
  Pair pair;
  void thread(unsigned index) override {
    if (index == 0) {
      pair.touch();
      if (!pair.join.detach()) pair.free_record();
    } else {
      pair.run_body();
      pair.finish();
    }
  }
  void after() override { pair.check_end(); }
};

// The joiner claims it and runs it in place, unless the one who dequeues its entry is faster.
struct ClaimAndDequeue : model::Scenario<2> {
  Pair pair;
  void thread(unsigned index) override {
    if (index == 0) {
      if (pair.claim.claim()) {
        pair.run_body();
        pair.go_on();
      } else {
        pair.wait();
      }
    } else {
      // A full ring is swept of what joiners left behind: a hint, meet_entry decides.
      if (pair.claim.is_left_behind()) {
        pair.meet_entry([] { RL_ASSERT(!"left behind, and yet to be run"); });
        return;
      }
      pair.meet_entry([this] {
        pair.run_body();
        pair.finish();
      });
    }
  }
  void after() override {
    pair.check_end();
    RL_ASSERT(pair.joined == 1);
  }
};

// The claimed goroutine blocks and is readied: now two entries of it are in queues, met by two
// threads in any order.
struct ClaimedBlocks : model::Scenario<3> {
  Pair pair;
  model::Atomic<int> second_entry{0};  // 1: queued; 2: there will be none
  int resumed = 0;

  // What is left of the goroutine, and then of the joiner, once somebody switches to their stack.
  void resume() {
    RL_ASSERT(++resumed == 1);
    RL_ASSERT(pair.context(RL_INFO) == 1);
    pair.go_on();
  }

  void thread(unsigned index) override {
    if (index == 0) {
      if (pair.claim.claim()) {
        pair.run_body();
        pair.context(RL_INFO) = 1;       // it blocks, with the joiner below it on the stack,
        second_entry.store(1, release);  // and is readied
      } else {
        second_entry.store(2, release);
        pair.wait();
      }
    } else if (index == 1) {
      pair.meet_entry([this] {
        if (pair.ran != 0) return resume();
        pair.run_body();
        pair.finish();
      });
    } else {
      int seen;
      while ((seen = second_entry.load(acquire)) == 0) rl::yield(1, RL_INFO);
      if (seen == 1) pair.meet_entry([this] { resume(); });
    }
  }
  void after() override {
    pair.check_end();
    RL_ASSERT(pair.joined == 1);
  }
};

// The claimed goroutine is stopped. Its entry in the stopped line resumes it without a look at the
// claim; the one that the joiner left behind never does, whenever it is met.
struct ClaimedIsStopped : model::Scenario<3> {
  Pair pair;
  model::Atomic<int> stopped_entry{0};  // 1: queued; 2: there will be none

  void thread(unsigned index) override {
    if (index == 0) {
      if (pair.claim.claim()) {
        pair.run_body();
        stopped_entry.store(1, release);
      } else {
        stopped_entry.store(2, release);
        pair.wait();
      }
    } else if (index == 1) {
      pair.meet_entry([this] {
        pair.run_body();
        pair.finish();
      });
    } else {
      int seen;
      while ((seen = stopped_entry.load(acquire)) == 0) rl::yield(1, RL_INFO);
      if (seen == 1) pair.go_on();
    }
  }
  void after() override {
    pair.check_end();
    RL_ASSERT(pair.joined == 1);
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<JoinAndFinish>("join and finish", model::full())
      .explore<JoinOrCancel>("join until cancelled, and finish", model::bounded(6))
      .explore<TwoWithdraw>("join until two withdraw it", model::bounded(6))
      .explore<DetachAndFinish>("detach and finish", model::full())
      .explore<ClaimAndDequeue>("claim and dequeue", model::full())
      .explore<ClaimedBlocks>("a claimed goroutine blocks", model::full())
      .explore<ClaimedIsStopped>("a claimed goroutine is stopped", model::full())
      .report();
}
