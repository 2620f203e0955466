// Model of [cancel]: a waiter is served, or its context ends first, or both at once.
//
// Checked   The waiter is woken once, by the one who took it off the first list; it is served or
//           cancelled, never both and never neither; nobody waits for ever; nobody touches its
//           records once it has gone on (a plain variable stands for its stack); what the one that
//           woke it wrote is seen.
// Bounds    A waiter and a canceller, with or without a partner: every interleaving, or so many
//           preemptions as main() says.
// Stands in The first list and its lock, the wake-up, and the time that is up for one that comes
// too late: CancelSource::wait.
//
// Mutant MUTANT_RELAXED_RELEASE   the waiter goes on while the canceller still looks at its record
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_NO_WAIT           a waiter that was served does not wait for the canceller
// Mutant MUTANT_BLIND_WITHDRAW    the canceller does not look whether somebody has served the
//                                 waiter
// Mutant MUTANT_TRUSTS_LIST       a waiter that comes too late believes that it will be found
// Mutant MUTANT_ENDS_LATE         the context lets waits begin until after the canceller has looked
#include "model_run.h"
#include "waiters.h"

namespace magpie::sched {
struct M;
}
#include "sched/cancel_list.h"

namespace {

using magpie::sched::CancelList;
using magpie::sched::CancelRecord;
using model::chosen;

// A goroutine of the only run.
struct Here {
  std::uint64_t generation() const { return 1; }
  magpie::sched::M* m() const {
    static char some;
    return reinterpret_cast<magpie::sched::M*>(&some);
  }
};

class Lock {
 public:
  void lock() { mutex_.lock(RL_INFO); }
  void unlock() { mutex_.unlock(RL_INFO); }

 private:
  rl::mutex mutex_;
};

template <int threads>
struct Waits : model::Scenario<threads> {
  using List = CancelList<Lock>;

  List contexts;
  model::Memory stack;  // of the waiter
  CancelRecord record;
  model::WakeUp wake_up;
  // The first list: of what it waits for.
  Lock lock;
  rl::var<int> listed;          // guarded by lock
  rl::var<int> served;          // by the partner, before it wakes the waiter
  bool units = false;           // guarded by lock: the partner came first
  int wake_ups = 0, ended = 0;  // the model's own: threads take turns

  void before() override {
    listed(RL_INFO) = 0;
    served(RL_INFO) = 0;
  }

  void thread(unsigned index) override {
    if (index == 0) return wait();
    if (index == 1) return cancel();
    serve();
  }

  bool withdraw() {
    lock.lock();
    stack.touch();
    bool won = listed(RL_INFO) == 1;
    if (chosen<"MUTANT_BLIND_WITHDRAW">()) won = true;
    listed(RL_INFO) = 0;
    lock.unlock();
    return won;
  }
  void wake() {
    RL_ASSERT(++wake_ups == 1);
    wake_up.send();
  }

  // cancel_source.cc
  void wait() {
    lock.lock();
    if (units) {
      lock.unlock();
      return go_on(true);
    }
    listed(RL_INFO) = 1;
    bool added = contexts.add(record, Here());
    lock.unlock();  // the commit step
    if (!added && !chosen<"MUTANT_TRUSTS_LIST">() && withdraw()) return go_on(false);
    wake_up.wait();
    if (record.cancelled) return go_on(false);
    if (added && !contexts.remove(record, Here()) && !chosen<"MUTANT_NO_WAIT">()) {
      while (record.firing.is_firing()) rl::yield(1, RL_INFO);
    }
    RL_ASSERT(served(RL_INFO) == 1);
    go_on(true);
  }
  void go_on(bool was_served) {
    RL_ASSERT(was_served || served(RL_INFO) == 0);
    ++ended;
    stack.destroy();
  }

  void cancel() {
    if (!chosen<"MUTANT_ENDS_LATE">()) contexts.end();
    while (CancelRecord* taken = contexts.take(Here())) {
      RL_ASSERT(taken == &record);
      List::fire(
          *taken,
          [this] {
            stack.touch();
            bool won = withdraw();
            stack.touch();
            return won;
          },
          [this] { wake(); });
    }
    if (chosen<"MUTANT_ENDS_LATE">()) contexts.end();
  }

  void serve() {
    lock.lock();
    bool waits = listed(RL_INFO) == 1;
    if (waits) {
      listed(RL_INFO) = 0;
      served(RL_INFO) = 1;
    } else {
      units = true;
    }
    lock.unlock();
    if (waits) wake();
  }

  void after() override {
    RL_ASSERT(ended == 1);
    stack.expect_destroyed();
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Waits<2>>("a waiter, a canceller", model::full())
      .explore<Waits<3>>("a waiter, a canceller, a partner", model::bounded(4))
      .report();
}
