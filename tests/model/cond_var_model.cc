// Model of [signal]: waiters get on a list, release their lock and sleep; others notify; time may
// be up.
//
// Checked   A notification after a waiter has released its lock wakes a waiter that returns
//           notified, unless that one gave up before; it is never lost between one that gives up
//           and the next. A waiter that nobody notifies returns when its time is up. Who resumes a
//           waiter sees its saved context, and a waiter what was done before the notification
//           (plain variables). Records are not touched after their waiter has returned, nor the
//           list after it was destroyed when all had been notified.
// Bounds    One that waits and one that notifies: every interleaving. Else as many preemptions as
//           main() says.
// Stands in The list's lock and the list; cond_var.cc's steps. A waiter's sleep, its timer and who
//           resumes it are threads of the model.
//
// Mutant MUTANT_RELAXED_RELEASE   contexts and results are not published
// Mutant MUTANT_RELAXED_ACQUIRE   they are not seen
// Mutant MUTANT_BLIND_EXCHANGE    park, choose and withdraw do not look who came first
// Mutant MUTANT_LISTED_LATE       a waiter gets on the list after it has released its lock
// Mutant MUTANT_ONE_TRY           time that is up before the waiter has parked counts as notified
// Mutant MUTANT_NOBODY_WAITS      the list is destroyed without waiting for those who withdraw
// Mutant MUTANT_NO_LOCK_IF_EMPTY  a list that is empty is destroyed without its lock
#include "model_run.h"
#include "waiters.h"

#include "sync/signal_word.h"

namespace {

using magpie::sync::SignalWord;
using model::chosen;

constexpr int kWaiters = 2;

// A record on a waiter's stack, and what became of the waiter.
struct Record {
  SignalWord signal;
  model::Memory memory;  // gone when the waiter has returned
  rl::var<int> context;  // saved when the waiter parks
  model::WakeUp wake_up;
  enum How { not_yet, woken, timed_out };
  How resumed = not_yet;  // the model's own: threads take turns

  Record() { context(RL_INFO) = 0; }
  // By whoever makes it run again.
  void resume(How how) {
    memory.touch();
    RL_ASSERT(context(RL_INFO) == 1);
    RL_ASSERT(resumed == not_yet);
    resumed = how;
    wake_up.send();
  }
};

// cond_var.cc
struct CondVar {
  model::Memory memory;
  model::ListLock list_lock{memory};
  model::Line line;
  int listed = 0;  // how many are on it; the model's own: threads take turns
  Record records[kWaiters];

  void push(int self) {
    list_lock.lock();
    line.push_back(self);
    ++listed;
    list_lock.unlock();
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
    record.wake_up.wait();
    record.memory.destroy();
    return record.resumed;
  }

  // The timer's step.
  void time_is_up(int self) {
    Record& record = records[self];
    SignalWord::Withdrawn withdrawn;
    while ((withdrawn = record.signal.withdraw()) == SignalWord::Withdrawn::not_yet) {
      if (chosen<"MUTANT_ONE_TRY">()) return;
      rl::yield(1, RL_INFO);
    }
    if (withdrawn == SignalWord::Withdrawn::no_notified) return;
    list_lock.lock();
    line.remove(self);
    --listed;
    list_lock.unlock();
    record.resume(Record::timed_out);
  }

  // How many were notified.
  int notify(int most) {
    int chosen_waiters[kWaiters] = {}, count = 0;
    list_lock.lock();
    for (int i = 0; i < line.size() && count < most;) {
      int waiter = line.at(i);
      if (!records[waiter].signal.choose()) {
        ++i;
        continue;
      }
      records[waiter].memory.touch();
      line.remove(waiter);
      --listed;
      chosen_waiters[count++] = waiter;
    }
    list_lock.unlock();
    for (int i = 0; i < count; ++i) {
      if (records[chosen_waiters[i]].signal.finish())
        records[chosen_waiters[i]].resume(Record::woken);
    }
    return count;
  }

  void destroy() {
    bool looks = !chosen<"MUTANT_NOBODY_WAITS">();
    if (chosen<"MUTANT_NO_LOCK_IF_EMPTY">()) {
      rl::yield(1, RL_INFO);
      looks = listed != 0;
    }
    while (looks) {
      list_lock.lock();
      bool withdraws = false;
      for (int i = 0; i < line.size(); ++i) withdraws |= records[line.at(i)].signal.is_withdrawn();
      list_lock.unlock();
      if (!withdraws) break;
      rl::yield(1, RL_INFO);
    }
    memory.destroy();
  }
};

// Thread 0 waits, thread 1 notifies once it sees, under the user's lock, that it waits, and
// destroys the CondVar.
struct OneWaits : model::Scenario<2> {
  rl::mutex user;
  CondVar changed;
  rl::var<int> waits, result;

  void before() override {
    waits(RL_INFO) = 0;
    result(RL_INFO) = 0;
  }
  void thread(unsigned index) override {
    if (index == 0) {
      user.lock(RL_INFO);
      waits(RL_INFO) = 1;
      bool listed_late = chosen<"MUTANT_LISTED_LATE">();
      if (!listed_late) changed.push(0);
      user.unlock(RL_INFO);
      if (listed_late) changed.push(0);
      changed.park(0);
      RL_ASSERT(changed.sleep(0) == Record::woken);
      RL_ASSERT(result(RL_INFO) == 7);
    } else {
      for (bool seen = false; !seen;) {
        user.lock(RL_INFO);
        seen = waits(RL_INFO) == 1;
        user.unlock(RL_INFO);
        if (!seen) rl::yield(1, RL_INFO);
      }
      result(RL_INFO) = 7;
      RL_ASSERT(changed.notify(1) == 1);
      changed.destroy();
    }
  }
};

// Thread 0 waits, and its time is up (thread 1) before or after it has parked. Nobody notifies it.
struct NobodyNotifies : model::Scenario<2> {
  CondVar changed;

  void before() override { changed.push(0); }
  void thread(unsigned index) override {
    if (index == 1) return changed.time_is_up(0);
    changed.park(0);
    RL_ASSERT(changed.sleep(0) == Record::timed_out);
  }
};

// Two are on the list. The first one's time is up (thread 2) when one of them is notified (thread
// 3): the first is notified, or it gives up and the second is. Without the second, it is destroyed
// right after.
template <bool second_waits>
struct TimeIsUp : model::Scenario<second_waits ? 4 : 3> {
  CondVar changed;
  model::WakeUp first_is_through;
  Record::How how[kWaiters] = {};  // the model's own: threads take turns
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
    if (self == 1) {
      // It is woken only if the first gave up.
      first_is_through.wait();
      if (how[0] != Record::timed_out) return;
    }
    how[self] = changed.sleep(self);
    if (self == 0) first_is_through.send();
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
      .explore<OneWaits>("one waits, one notifies and destroys", model::full())
      .explore<NobodyNotifies>("time is up, nobody notifies", model::full())
      .explore<TimeIsUp<false>>("time is up", model::bounded(5))
      .explore<TimeIsUp<true>>("time is up, another waits", model::bounded(4))
      .report();
}
