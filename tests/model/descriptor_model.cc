// Model of [slot] and [registration]: descriptors come and go while their events are delivered, and
// while others close them.
//
// The steps mirror slot.cc (take, give, find), network.cc (attach, detach, deliver) and
// descriptor.cc (register_once, wait, wake). The kernel is a list of tags and events under its own
// lock.
//
// Checked   Nobody sleeps for ever: an event of the present owner reaches it, whatever late events
//           come, and who registers hears of a close. A user never gets hold of a slot of a run()
//           that has ended.
// Bounds    See main().
//
// Mutant MUTANT_GENERATION_LATE   the generation changes after the slot was given back
// Mutant MUTANT_RESET_LATE        a new owner forgets what is known after the kernel heard of it
// Mutant MUTANT_SLEEPS_AT_ONCE    who registers does not try again
// Mutant MUTANT_WAKE_UNLOCKED     a closer looks for the slot without the lock
// Mutant MUTANT_RELAXED_RELEASE   a user finds the slot of an earlier run(), or does not see what
//                                 is in it
// Mutant MUTANT_RELAXED_ACQUIRE   the same
#include "model_run.h"

#include "io/closing.h"
#include "io/registration.h"
#include "waiters.h"

namespace {

using magpie::io::Closing;
using magpie::io::Registration;
using magpie::poll::Readiness;
using magpie::poll::Slot;
using magpie::poll::Tag;
using model::chosen;

struct Record {
  model::WakeUp wake_up;
  static void wake(void* waiter) {
    if (waiter != nullptr) static_cast<Record*>(waiter)->wake_up.send();
  }
};

// A slot goes from one owner to the next, whose descriptor is ready from the start.
struct PassedOn : model::Scenario<3> {
  Slot slot;
  rl::mutex table;
  rl::var<bool> is_free;  // guarded by table
  rl::mutex kernel;
  std::uint64_t known = 0;  // the tag in the kernel's list; guarded by kernel, as all of these
  bool is_known = false;
  std::uint64_t events[3];
  int coming = 0, taken = 0;
  Record record;
  bool over = false;  // the model's own: threads take turns

  void before() override {
    is_free(RL_INFO) = false;
    attach();
  }
  void attach() {
    kernel.lock(RL_INFO);
    known = Tag::of(slot).packed();
    is_known = true;
    events[coming++] = known;  // it is ready
    kernel.unlock(RL_INFO);
  }
  void former_owner() {
    kernel.lock(RL_INFO);
    is_known = false;
    kernel.unlock(RL_INFO);
    if (!chosen<"MUTANT_GENERATION_LATE">()) slot.end();
    table.lock(RL_INFO);
    is_free(RL_INFO) = true;
    table.unlock(RL_INFO);
    if (chosen<"MUTANT_GENERATION_LATE">()) slot.end();
  }
  void next_owner() {
    for (bool got = false; !got;) {
      table.lock(RL_INFO);
      got = is_free(RL_INFO);
      if (got && !chosen<"MUTANT_RESET_LATE">()) slot.begin();
      table.unlock(RL_INFO);
      if (!got) rl::yield(1, RL_INFO);
    }
    attach();
    if (chosen<"MUTANT_RESET_LATE">()) slot.begin();
    // It is not told that it is ready but by the event. A late one may come first: it tries again.
    for (int heard = 0; heard == 0;) {
      if (slot.read.begin_wait(&record)) record.wake_up.wait();
      slot.read.forget();
      heard = own_event_was_delivered ? 1 : 0;
    }
    over = true;
  }
  bool own_event_was_delivered = false;  // the model's own
  void poller() {
    while (!over) {
      kernel.lock(RL_INFO);
      bool got = taken != coming;
      std::uint64_t event = got ? events[taken++] : 0;
      bool of_present = got && is_known && event == known && taken == coming && coming == 2;
      kernel.unlock(RL_INFO);
      if (!got) {
        if (coming == 2) return;
        rl::yield(1, RL_INFO);
        continue;
      }
      if (!Tag::of(event).is_of(slot)) continue;
      if (of_present) own_event_was_delivered = true;
      Record::wake(slot.read.set());
    }
  }

  void thread(unsigned index) override {
    if (index == 0) former_owner();
    if (index == 1) next_owner();
    if (index == 2) poller();
  }
};

// A descriptor that is registered by a user, of whom there is one, while another closes it. It
// never becomes ready.
struct ClosedMeanwhile : model::Scenario<2> {
  static constexpr std::uint64_t kRun = 1;
  Registration registration;
  Closing closing;
  Slot slot;
  rl::mutex lock;
  Record record;

  void user() {
    if (!closing.begin_use(Closing::User::goroutine)) return;
    for (;;) {
      if (Slot* its = registration.slot_in(kRun)) its->read.forget();
      if (closing.is_closed()) break;
      // the system call would block
      Slot* its = registration.slot_in(kRun);
      if (its == nullptr) {
        lock.lock(RL_INFO);
        slot.begin();
        registration.set_locked(&slot, kRun);
        lock.unlock(RL_INFO);
        if (!chosen<"MUTANT_SLEEPS_AT_ONCE">()) continue;
        its = &slot;
      }
      if (its->read.begin_wait(&record)) record.wake_up.wait();
    }
    (void)closing.end_use(Closing::User::goroutine);
  }
  void closer() {
    if (closing.close() != Closing::Close::by_last_user) return;
    bool locks = !chosen<"MUTANT_WAKE_UNLOCKED">();
    if (locks) lock.lock(RL_INFO);
    Slot* its = registration.slot_in(kRun);
    if (locks) lock.unlock(RL_INFO);
    if (its != nullptr) Record::wake(its->read.set());
  }
  void thread(unsigned index) override {
    if (index == 0) user();
    if (index == 1) closer();
  }
};

// A plain thread registers it in the second run() while a goroutine uses it. The slot of the first
// is gone.
struct LaterRun : model::Scenario<3> {
  static constexpr std::uint64_t kFirst = 1, kSecond = 2;
  Registration registration;
  rl::mutex lock;
  Slot slots[2];
  rl::var<int> filled;  // what belongs to the second slot

  void before() override { registration.set_locked(&slots[0], kFirst); }
  void thread(unsigned index) override {
    if (index == 0) {
      lock.lock(RL_INFO);
      if (registration.slot_in(kSecond) == nullptr) {
        filled(RL_INFO) = 1;
        registration.set_locked(&slots[1], kSecond);
      }
      lock.unlock(RL_INFO);
    } else if (index == 1) {
      look();
      look();
    } else {  // forget_earlier_run()
      lock.lock(RL_INFO);
      if (registration.generation() == kFirst) registration.forget_locked();
      lock.unlock(RL_INFO);
      look();
    }
  }
  void look() {
    Slot* slot = registration.slot_in(kSecond);
    RL_ASSERT(slot != &slots[0]);
    if (slot != nullptr) RL_ASSERT(filled(RL_INFO) == 1);
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<LaterRun>("registered in a later run", model::bounded(5))
      .explore<PassedOn>("a slot is passed on", model::bounded(3))
      .explore<PassedOn>("a slot is passed on", model::random(200'000))
      .explore<ClosedMeanwhile>("closed while one registers", model::full())
      .report();
}
