// snapshot.h: what all goroutines do, at about one moment. Nothing stops for it.
//
//   parked      A goroutine's stack stands still while it is parked. It is unwound from its saved
//               registers, and then looked at again: if the goroutine is still parked there, and
//               all return addresses are where they were, the stack was right.
//   alike       Most stacks of a large program are the same. A stack that was unwound tells where
//               its return addresses are. If another stack is as deep and has the same addresses at
//               the same places, it need not be unwound: a few loads.
//   running     The thread unwinds itself in a signal handler (sample.h). A thread that was stopped
//               in the middle of a goroutine left its registers in its M.
// Allocates by mmap only, and takes one lock: for one Snapshot at a time. Nobody enters the runtime
// with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/dump/arena.h"
#include "sched/dump/for_each.h"
#include "sched/dump/sample.h"
#include "sched/dump/waits.h"

namespace magpie::sched {

// Goroutines with the same name, state, reason, body and stack.
struct Group {
  static constexpr std::size_t kMostIds = 8, kMostName = 64;

  Group* next = nullptr;
  Group* next_in_bucket = nullptr;
  std::size_t count = 0;
  std::uint64_t ids[kMostIds];
  char name[kMostName];
  GState state;
  WaitReason reason;
  bool in_blocking_call;
  bool has_different_objects = false;
  const void* object;
  int descriptor;          // of an IO wait
  std::uint64_t joined;    // the goroutine that a join waits for
  std::int64_t waited_ns;  // the longest; -1: unknown
  std::uint64_t longest;   // the goroutine that has waited so long
  std::uint64_t creator;
  std::uintptr_t body;
  int thread;            // 0: none
  const char* no_stack;  // why; null: it has a stack
  Frames frames;
};

class Snapshot {
 public:
  enum class Folding { yes, no };
  Snapshot() = default;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // All calls: on a thread that keeps the runtime, an M, or within a Visit.

  // The records to look at. Enters the runtime, and so ends what blocking() has declared: a caller
  // that wants to declare it calls this first. Else take() does.
  void list();
  enum class Asks { running_threads, nobody };
  void take(Folding folding, Asks asks = Asks::running_threads);

  std::size_t goroutines() const { return goroutines_; }
  Group* const* begin() const { return sorted_; }
  Group* const* end() const { return sorted_ + groups_; }
  const WaitGraph& waits() const { return waits_; }

 private:
  static constexpr std::size_t kBuckets = 4096;
  struct Look;
  struct Known;

  static void look_at_parked(void* looking);
  void look_at(G* g);
  void look_at_running(Asks asks);
  void add(const Look& look);
  const Known* find_known(const Look& look) const;
  void unwind(Look& look);
  void sort();

  Arena arena_;
  CarvedRecords records_;
  bool has_list_ = false;
  WaitGraph waits_;
  Folding folding_ = Folding::yes;
  std::size_t goroutines_ = 0;
  std::size_t groups_ = 0;
  Group* first_ = nullptr;
  std::uint64_t* seen_running_ = nullptr;  // their ids, sorted
  std::size_t seen_count_ = 0;
  Group** sorted_ = nullptr;
  Group** buckets_ = nullptr;
  Known** known_ = nullptr;
};

// The stack of a goroutine that runs on m. False: it has gone on, or m's thread does not answer.
[[nodiscard]] bool take_sample(Frames& frames, M* m, std::uint64_t goroutine,
                               std::int64_t until_ns);

// Of a goroutine that may end meanwhile, so call it in survives(): the name may be freed. Its
// characters are read through the string's own words, as its functions would be instrumented.
void read_name(const G& g, char (&name)[Group::kMostName]);

// In the child of a fork(): the thread that took a Snapshot is not there.
void forget_dumps();

}  // namespace magpie::sched
