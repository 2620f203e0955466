// Model of [wait-list]: goroutines of several runs and plain threads come to a list, are woken, and
// leave.
//
// The list's lock puts all steps in a row, so one thread makes every sequence of so many steps,
// chosen step by step. When a run ends its goroutines' records are overwritten, as their stacks are
// unmapped: the list must not touch them.
//
// Checked   The list is what a plain line of the same waiters is: first come, first served, no
//           goroutine of an earlier run, every plain thread. Records that are gone are neither
//           read, which would follow a wild pointer, nor written. Without the lock: who finds the
//           list empty sees what was done before it became so.
// Bounds    Two goroutine records and two thread records, three runs or none: every sequence of
//           four steps, and random ones of twenty.
//
// Mutant MUTANT_STALE_PRESENCE    who comes says that it is in the first run for ever
// Mutant MUTANT_BLIND_UNLINK      who leaves does not say in which run it is
// Mutant MUTANT_KEEPS_ERA         a record that was forgotten, and used again, passes for one on
//                                 the list
// Mutant MUTANT_RELAXED_RELEASE   who finds the list empty does not see what was done before
// Mutant MUTANT_RELAXED_ACQUIRE   the same
#include "model_run.h"

#include <cstring>

namespace magpie::sched {
struct M;
}
#include "sched/wait_list.h"

namespace {

using magpie::sched::WaitList;
using magpie::sched::WaitRecord;
using model::chosen;

// Of a goroutine of that run, or of a plain thread while it goes on; 0: none does.
class Here {
 public:
  Here(std::uint64_t generation, bool is_thread) : generation_(generation), is_thread_(is_thread) {}
  std::uint64_t generation() const { return chosen<"MUTANT_STALE_PRESENCE">() ? 1 : generation_; }
  magpie::sched::M* m() const {
    static char some;
    return is_thread_ ? nullptr : reinterpret_cast<magpie::sched::M*>(&some);
  }

 private:
  std::uint64_t generation_;
  bool is_thread_;
};

// What the list should be. Without an allocator: it is Relacy's.
class Line {
 public:
  bool empty() const { return size_ == 0; }
  int size() const { return size_; }
  int at(int place) const { return who_[place]; }
  void insert(int place, int who) {
    for (int i = size_++; i > place; --i) who_[i] = who_[i - 1];
    who_[place] = who;
  }
  void remove(int who) {
    int at = 0;
    while (who_[at] != who) ++at;
    for (--size_; at < size_; ++at) who_[at] = who_[at + 1];
  }

 private:
  int who_[8];
  int size_ = 0;
};

template <int steps>
struct Steps : model::Scenario<2> {
  static constexpr int kGoroutines = 2, kAll = 4;
  WaitList list;
  WaitRecord records[kAll];
  bool waits[kAll] = {};
  bool is_gone[kAll] = {};  // its stack is
  Line line;
  std::uint64_t run = 1;  // 0: none goes on
  std::uint64_t runs = 1;

  static bool is_thread(int who) { return who >= kGoroutines; }
  Here here(int who) const { return {run, is_thread(who)}; }

  void thread(unsigned index) override {
    if (index != 0) return;
    for (int i = 0; i < steps; ++i) step();
    while (!line.empty()) take_first(kAll - 1);
    RL_ASSERT(list.first(here(kAll - 1)) == nullptr);
  }
  void step() {
    switch (rl::rand(6)) {
      case 0:
        return push(static_cast<int>(rl::rand(kAll)), false);
      case 1:
        return push(static_cast<int>(rl::rand(kAll)), true);
      case 2:
        return take_first(run == 0 ? kAll - 1 : static_cast<int>(rl::rand(2)) * (kAll - 1));
      case 3:
        return leave(static_cast<int>(rl::rand(kAll)));
      case 4:
        return end_run();
      default:
        return begin_run();
    }
  }
  void push(int who, bool in_front) {
    if (waits[who] || (!is_thread(who) && run == 0)) return;
    std::uint64_t era = records[who].era;
    if (is_gone[who]) records[who] = WaitRecord();  // a new goroutine's, in the same memory
    is_gone[who] = false;
    if (in_front) {
      list.push_front(records[who], here(who));
      line.insert(0, who);
    } else {
      list.push(records[who], here(who));
      line.insert(line.size(), who);
    }
    if (chosen<"MUTANT_KEEPS_ERA">() && era != 0) records[who].era = era;
    waits[who] = true;
    check();
  }
  void take_first(int by) {
    WaitRecord* first = list.take_first(here(by));
    if (line.empty()) {
      RL_ASSERT(first == nullptr);
      return;
    }
    RL_ASSERT(first == &records[line.at(0)]);
    waits[line.at(0)] = false;
    line.remove(line.at(0));
    check();
  }
  // It gives up, or was taken off meanwhile and does not know.
  void leave(int who) {
    if (is_gone[who] || (!is_thread(who) && run == 0)) return;
    if (chosen<"MUTANT_BLIND_UNLINK">()) {
      list.unlink(records[who]);
    } else {
      RL_ASSERT(list.holds(records[who], here(who)) == waits[who]);
      list.unlink(records[who], here(who));
    }
    if (waits[who]) line.remove(who);
    waits[who] = false;
    check();
  }
  void end_run() {
    if (run == 0) return;
    run = 0;
    for (int who = 0; who < kGoroutines; ++who) {
      if (waits[who]) line.remove(who);
      waits[who] = false;
      is_gone[who] = true;
      std::memset(static_cast<void*>(&records[who]), kGarbage, sizeof(WaitRecord));
    }
  }
  void begin_run() {
    if (run == 0) run = ++runs;
  }
  void check() {
    for (int who = 0; who < kGoroutines; ++who) {
      auto* bytes = reinterpret_cast<const unsigned char*>(&records[who]);
      for (std::size_t i = 0; is_gone[who] && i < sizeof(WaitRecord); ++i)
        RL_ASSERT(bytes[i] == kGarbage);
    }
    RL_ASSERT(line.empty() ? list.first(here(kAll - 1)) == nullptr : !list.looks_empty());
    int at = 0;
    for (WaitRecord* record = list.first(here(kAll - 1)); record != nullptr;
         record = record->next) {
      RL_ASSERT(at < line.size() && record == &records[line.at(at)]);
      ++at;
    }
    RL_ASSERT(at == line.size());
  }
  static constexpr unsigned char kGarbage = 0xEE;
};

// Without the lock: who finds the list empty sees what was done before the last was taken off.
struct LooksEmpty : model::Scenario<2> {
  WaitList list;
  WaitRecord record;
  rl::var<int> done;
  void before() override {
    done(RL_INFO) = 0;
    list.push(record, Here(1, true));
  }
  void thread(unsigned index) override {
    if (index == 0) {
      done(RL_INFO) = 1;
      list.take_first(Here(1, true));
    } else if (list.looks_empty()) {
      RL_ASSERT(done(RL_INFO) == 1);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<LooksEmpty>("looks empty", model::full())
      .explore<Steps<4>>("every four steps", model::full())
      .explore<Steps<20>>("twenty steps", model::random(300'000))
      .report();
}
