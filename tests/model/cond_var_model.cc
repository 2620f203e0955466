// Model of [signal]: waiters get on a list, release their lock and sleep; others notify; time may be up.
//
// Checked   A notification after a waiter has released its lock wakes a waiter that returns notified, unless that
//           one gave up before; it is never lost between one that gives up and the next. Who resumes a waiter sees its
//           saved context, and a waiter what was done before the notification (plain variables). Records are not
//           touched after their waiter has returned, nor the list after it was destroyed when all had been notified.
// Bounds    As many preemptions as main() says.
// Stands in The list's lock and the list; cond_var.cc's steps. A waiter's sleep, its timer and who resumes it are
//           threads of the model.
//
// Mutant MUTANT_RELAXED_RELEASE   contexts and results are not published
// Mutant MUTANT_RELAXED_ACQUIRE   they are not seen
// Mutant MUTANT_BLIND_EXCHANGE    park, claim and withdraw do not look who came first
// Mutant MUTANT_LISTED_LATE       a waiter gets on the list after it has released its lock
// Mutant MUTANT_NOBODY_WAITS      the list is destroyed without waiting for those who withdraw
#include "model_run.h"

#include "sync/signal_word.h"

namespace {

using magpie::base::acquire;
using magpie::base::Atomic;
using magpie::base::release;
using magpie::sync::SignalWord;
using model::chosen;

// A lock of the model, for the list and for the user.
struct SpinLock {
  Atomic<std::uint32_t> word{0};
  void lock() {
    while (word.exchange(1, acquire) != 0) rl::yield(1, RL_INFO);
  }
  void unlock() { word.store(0, release); }
};

constexpr int kWaiters = 2;

// A record on a waiter's stack, and what became of the waiter.
struct Record {
  SignalWord signal;
  rl::var<int> alive;    // the record's memory: 0 when the waiter has returned
  rl::var<int> context;  // saved when the waiter parks
  Atomic<std::uint32_t> resumed{0};
  enum How : std::uint32_t { not_yet, woken, timed_out };

  Record() {
    alive(RL_INFO) = 1;
    context(RL_INFO) = 0;
  }
  void touch() { RL_ASSERT(alive(RL_INFO) == 1); }
  // By whoever makes it run again.
  void resume(How how) {
    touch();
    RL_ASSERT(context(RL_INFO) == 1);
    RL_ASSERT(resumed.exchange(how, release) == not_yet);
  }
};

// cond_var.cc
struct CondVar {
  SpinLock lock;
  rl::var<int> first, second;  // the list: indices + 1
  rl::var<int> memory;
  Record records[kWaiters];

  CondVar() {
    first(RL_INFO) = 0;
    second(RL_INFO) = 0;
    memory(RL_INFO) = 1;
  }
  void lock_list() {
    lock.lock();
    RL_ASSERT(memory(RL_INFO) == 1);
  }
  void unlock_list() {
    RL_ASSERT(memory(RL_INFO) == 1);
    lock.unlock();
  }

  void push(int self) {
    lock_list();
    (static_cast<int>(first(RL_INFO)) == 0 ? first : second)(RL_INFO) = self + 1;
    unlock_list();
  }
  void unlink(int self) {
    if (first(RL_INFO) == self + 1) {
      first(RL_INFO) = static_cast<int>(second(RL_INFO));
      second(RL_INFO) = 0;
    } else if (second(RL_INFO) == self + 1) {
      second(RL_INFO) = 0;
    }
  }

  // The waiter's commit step; it may run again as soon as that has been told.
  void park(int self) {
    Record& record = records[self];
    record.context(RL_INFO) = 1;
    if (!record.signal.park()) record.resume(Record::woken);
  }
  // Returns how it was resumed; its record is gone then.
  Record::How sleep(int self) {
    Record& record = records[self];
    std::uint32_t how;
    while ((how = record.resumed.load(acquire)) == Record::not_yet) rl::yield(1, RL_INFO);
    record.alive(RL_INFO) = 0;
    return static_cast<Record::How>(how);
  }

  // The timer's step.
  void time_is_up(int self) {
    Record& record = records[self];
    SignalWord::Withdrawn withdrawn;
    while ((withdrawn = record.signal.withdraw()) == SignalWord::Withdrawn::not_yet) {
      rl::yield(1, RL_INFO);
    }
    if (withdrawn == SignalWord::Withdrawn::no_notified) return;
    lock_list();
    unlink(self);
    unlock_list();
    record.resume(Record::timed_out);
  }

  // How many were notified.
  int notify(int most) {
    int claimed[kWaiters] = {}, count = 0;
    lock_list();
    int line[kWaiters] = {first(RL_INFO), second(RL_INFO)};
    for (int at : line) {
      if (at == 0 || count == most || !records[at - 1].signal.claim()) continue;
      records[at - 1].touch();
      unlink(at - 1);
      claimed[count++] = at - 1;
    }
    unlock_list();
    for (int i = 0; i < count; ++i) {
      if (records[claimed[i]].signal.finish()) records[claimed[i]].resume(Record::woken);
    }
    return count;
  }

  void destroy() {
    while (!chosen<"MUTANT_NOBODY_WAITS">()) {
      lock_list();
      int line[kWaiters] = {first(RL_INFO), second(RL_INFO)};
      bool withdraws = false;
      for (int at : line) withdraws |= at != 0 && records[at - 1].signal.is_withdrawn();
      unlock_list();
      if (!withdraws) break;
      rl::yield(1, RL_INFO);
    }
    memory(RL_INFO) = 0;
  }
};

// Thread 0 waits, thread 1 notifies once it sees, under the user's lock, that it waits, and destroys the CondVar.
struct OneWaits : model::Scenario<2> {
  SpinLock user;
  CondVar changed;
  rl::var<int> waits, result;

  void before() override {
    waits(RL_INFO) = 0;
    result(RL_INFO) = 0;
  }
  void thread(unsigned index) override {
    if (index == 0) {
      user.lock();
      waits(RL_INFO) = 1;
      bool listed_late = chosen<"MUTANT_LISTED_LATE">();
      if (!listed_late) changed.push(0);
      user.unlock();
      if (listed_late) changed.push(0);
      changed.park(0);
      RL_ASSERT(changed.sleep(0) == Record::woken);
      RL_ASSERT(result(RL_INFO) == 7);
    } else {
      for (bool seen = false; !seen;) {
        user.lock();
        seen = waits(RL_INFO) == 1;
        user.unlock();
        if (!seen) rl::yield(1, RL_INFO);
      }
      result(RL_INFO) = 7;
      RL_ASSERT(changed.notify(1) == 1);
      changed.destroy();
    }
  }
};

// Two are on the list. The first one's time is up (thread 2) when one of them is notified (thread 3): the first is
// notified, or it gives up and the second is. Without the second, it is destroyed right after.
template <bool second_waits>
struct TimeIsUp : model::Scenario<second_waits ? 4 : 3> {
  CondVar changed;
  int how[kWaiters] = {};  // the model's own: threads take turns
  int notified = 0;

  void before() override {
    changed.push(0);
    if (second_waits) changed.push(1);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      wait(0);
    } else if (index == 1) {
      changed.time_is_up(0);
    } else if (index == 2) {
      notified = changed.notify(1);
      if (!second_waits) changed.destroy();
    } else {
      wait(1);
    }
  }
  void wait(int self) {
    changed.park(self);
    if (self == 1 && !second_has_to_wake()) return;
    how[self] = changed.sleep(self);
  }
  // The second is woken only if the first gave up.
  bool second_has_to_wake() {
    for (;;) {
      std::uint32_t first = changed.records[0].resumed.load(acquire);
      if (first != Record::not_yet) return first == Record::timed_out;
      rl::yield(1, RL_INFO);
    }
  }

  void after() override {
    if (second_waits) {
      RL_ASSERT(notified == 1);
      RL_ASSERT((how[0] == Record::woken) != (how[1] == Record::woken));
    } else {
      RL_ASSERT((how[0] == Record::woken) == (notified == 1));
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<OneWaits>("one waits, one notifies and destroys", model::bounded(5))
      .explore<TimeIsUp<false>>("time is up", model::bounded(4))
      .explore<TimeIsUp<true>>("time is up, another waits", model::bounded(3))
      .report();
}
