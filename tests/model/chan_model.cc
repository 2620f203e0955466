// Model of [chan]: an operation is refused, or told that the channel is closed, without the lock.
//
// Checked   Refused is the truth at one moment: a send is not refused if a receiver waited until
//           the channel was closed, a receive is not refused if the buffer held a value until then.
//           Closed and drained is told only when nothing is left.
// Bounds    Every interleaving of two or three threads.
// Stands in The lock, and the list of waiters, of which only its emptiness counts here.
//
// Mutant MUTANT_RELAXED_RELEASE   what close() did to the list is seen, closed is not
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_CLOSED_FIRST      the looks for a refusal are made in the other order
// Mutant MUTANT_EMPTIED_FIRST     close() sends the receivers away before it says closed
// Mutant MUTANT_COUNT_FIRST       the looks for closed and drained are made in the other order
#include "model_run.h"

#include "chan/chan_state.h"

namespace {

using magpie::base::acquire;
using magpie::base::Atomic;
using magpie::base::release;
using magpie::chan::ChanState;
using model::chosen;

struct Waiters {
  Atomic<std::uint32_t> first{0};
  bool looks_empty() const { return first.load(acquire) == 0; }
  void set(std::uint32_t waiter) { first.store(waiter, release); }
};

struct Channel {
  ChanState state;
  Waiters receivers, senders;
  rl::mutex lock;

  void close() {
    lock.lock(RL_INFO);
    if (chosen<"MUTANT_EMPTIED_FIRST">()) receivers.set(0);
    state.close();
    receivers.set(0);
    lock.unlock(RL_INFO);
  }

  bool refuses_send() const {
    if (chosen<"MUTANT_CLOSED_FIRST">()) return !state.is_closed() && receivers.looks_empty();
    return state.refuses_send(receivers);
  }
  bool refuses_receive() const {
    if (chosen<"MUTANT_CLOSED_FIRST">()) return !state.is_closed() && state.size() == 0;
    return state.refuses_receive(senders);
  }
  bool is_drained() const {
    if (chosen<"MUTANT_COUNT_FIRST">()) return state.size() == 0 && state.is_closed();
    return state.is_drained();
  }
};

// A receiver waits; the channel is closed; somebody tries to send.
struct TrySend : model::Scenario<2> {
  Channel channel;
  void before() override {
    channel.state.open(0);
    channel.receivers.set(1);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      channel.close();
    } else {
      RL_ASSERT(!channel.refuses_send());
    }
  }
};

// A value is in the buffer; the channel is closed; only then it is received; somebody tries to
// receive.
struct TryReceive : model::Scenario<3> {
  Channel channel;
  void before() override {
    channel.state.open(1);
    channel.state.set_count(1);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      channel.close();
    } else if (index == 1) {
      channel.lock.lock(RL_INFO);
      if (channel.state.closed()) channel.state.set_count(0);
      channel.lock.unlock(RL_INFO);
    } else {
      RL_ASSERT(!channel.refuses_receive());
    }
  }
};

// Two values are sent, the first is received; the channel is closed. It is never drained.
struct Drained : model::Scenario<2> {
  Channel channel;
  void before() override { channel.state.open(2); }
  void set_count(std::size_t count) {
    channel.lock.lock(RL_INFO);
    channel.state.set_count(count);
    channel.lock.unlock(RL_INFO);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      set_count(1);
      set_count(0);
      set_count(1);
      channel.close();
    } else {
      RL_ASSERT(!channel.is_drained());
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<TrySend>("a send meets close", model::full())
      .explore<TryReceive>("a receive meets close", model::full())
      .explore<Drained>("closed and drained", model::full())
      .report();
}
