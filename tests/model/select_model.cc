// Model of [select]: two partners, at two channels, and the deadline want the same select.
//
// Checked   Exactly one of them ends the wait; the value that it moved arrives; the others' values
//           stay; nobody touches the select's records or its stack once it has gone on (plain
//           variables stand for both).
// Bounds    Two partners: at most three preemptions. With the deadline: at most two, and random
//           executions.
// Stands in The locks, the lists (one place each), the wake-up. Thread 0 is the commit step, which
//           begins with both locks.
//
// Mutant MUTANT_BLIND_EXCHANGE    two partners win
// Mutant MUTANT_RELAXED_RELEASE   the wake-up does not bring what was done before it
// Mutant MUTANT_NO_SECOND_LOCK    the select goes on without having held each lock again
// Mutant MUTANT_HASTY_DEADLINE    the deadline does not wait for the commit step
#include "model_run.h"
#include "waiters.h"

#include "chan/select_word.h"

namespace {

using magpie::base::acquire;
using magpie::base::Atomic;
using magpie::base::release;
using magpie::chan::SelectWord;
using model::chosen;

struct Channel {
  model::WakeUp freed;  // the lock, which begins held: the select has just shown its records
  rl::var<int> listed;  // whether the select's record is on the list
  rl::var<int> kept;    // a partner's value that was not wanted

  void lock() { freed.wait(); }
  void unlock() { freed.send(); }
};

constexpr unsigned kCommit = 0, kSelect = 1, kPartner0 = 2, kPartner1 = 3, kDeadline = 4;

template <unsigned threads>
struct Wait : model::Scenario<threads> {
  Channel channels[2];
  SelectWord word;
  rl::var<int> slots[2];
  rl::var<int> frame;  // of the wait: gone when it returns
  rl::var<int> stack;  // of the select: gone at its end
  Atomic<std::uint32_t> woken{0};
  int winners = 0;  // the model's own: threads take turns

  void before() override {
    for (auto& channel : channels) {
      channel.listed(RL_INFO) = 1;
      channel.kept(RL_INFO) = 0;
    }
    for (auto& slot : slots) slot(RL_INFO) = 0;
    frame(RL_INFO) = 1;
    stack(RL_INFO) = 1;
  }

  void thread(unsigned index) override {
    switch (index) {
      case kCommit:
        return commit();
      case kSelect:
        return go_on();
      case kDeadline:
        return withdraw();
      default:
        return serve(index - kPartner0);
    }
  }

  void commit() {
    RL_ASSERT(frame(RL_INFO) == 1);
    for (auto& channel : channels) {
      RL_ASSERT(stack(RL_INFO) == 1);  // which channel is next is written there
      channel.unlock();
    }
  }

  void wake() {
    RL_ASSERT(++winners == 1);
    woken.store(1, release);
  }

  void serve(unsigned index) {
    Channel& channel = channels[index];
    channel.lock();
    bool won = false;
    if (channel.listed(RL_INFO) == 1) {
      RL_ASSERT(stack(RL_INFO) == 1);  // the record
      channel.listed(RL_INFO) = 0;
      won = word.try_win(index);
      if (won) slots[index](RL_INFO) = 7;
    }
    if (!won) channel.kept(RL_INFO) = 7;
    channel.unlock();
    if (won) wake();
  }

  void withdraw() {
    bool hasty = chosen<"MUTANT_HASTY_DEADLINE">();
    if (!hasty) channels[1].lock();
    bool won = word.try_win(SelectWord::kTimeIsUp);
    if (!hasty) channels[1].unlock();
    if (won) wake();
  }

  void go_on() {
    while (woken.load(acquire) == 0) rl::yield(1, RL_INFO);
    frame(RL_INFO) = 0;
    for (auto& channel : channels) {
      if (chosen<"MUTANT_NO_SECOND_LOCK">()) break;
      channel.lock();
      channel.listed(RL_INFO) = 0;
      channel.unlock();
    }
    std::uint32_t winner = word.winner();
    for (std::uint32_t i = 0; i < 2; ++i) RL_ASSERT(slots[i](RL_INFO) == (i == winner ? 7 : 0));
    stack(RL_INFO) = 0;
  }

  void after() override {
    RL_ASSERT(winners == 1);
    for (std::uint32_t i = 0; i < 2; ++i)
      RL_ASSERT(channels[i].kept(RL_INFO) == (i == word.winner() ? 0 : 7));
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Wait<4>>("two partners", model::bounded(3))
      .explore<Wait<5>>("two partners and the deadline", model::bounded(2))
      .explore<Wait<5>>("two partners and the deadline", model::random(200'000))
      .report();
}
