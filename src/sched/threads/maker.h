// maker.h: a thread without a P that makes all other threads (by Threads::make), and looks up how
// many procs there should be.
//
// Making a thread allocates, and a stopped thread may hold the allocator's lock. An M that waited
// for that lock inside the runtime would keep a P that is needed to let the stopped thread go on.
// So Ms only ask the maker. Without a maker (there was no thread for it) each M makes threads
// itself.
//
// A thread allocates when it begins, too. So it is born without a P. Ps that want a thread wait in
// a list; a thread that has begun takes the first; sysmon may take one back for a goroutine that
// was stopped.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/event.h"
#include "base/lock.h"
#include "sched/core/m.h"
#include "sched/rest/wake.h"

namespace magpie::sched {

class Maker {
 public:
  // After stop() no thread is made, not even by an M that has no maker: later requests are refused,
  // and stop() waits for those that have begun.
  void start();
  void stop();
  bool is_there() const { return is_there_; }

  // A thread that takes p, or finds it taken back, will be made. False: the runtime ends.
  [[nodiscard]] bool ask_for_thread(P* p, Searching searching);

  // `waiting` goroutines want threads: one for each, at least one and at most `most`, that go to
  // sleep at once, so that there are some to hand Ps to. Threads that sleep or are being made
  // count.
  void ask_for_spares(std::size_t waiting, std::size_t most);

  // The maker is to look up how many procs there should be.
  void ask_for_refresh();

  // The watcher is to dump. Safe in signal handlers.
  void ask_for_dump() {
    dump_wanted_.store(true, base::relaxed);  // relaxed: the event orders
    asked_.set();
  }

  // m's thread has begun. The P that it was made for, or null: it sleeps until it is handed one.
  P* take_wanted(M* m);

  // A P that has waited for its thread since before `since_ns`, to be used otherwise; or null.
  P* take_back_wanted(std::int64_t since_ns);
  bool has_wanted() const { return wanted_count_ != 0; }

  // The world stops: Ps that wait for a thread do without.
  void give_back_wanted();

  // How many threads were made so far, or nothing while one is being made: it counts already, and
  // may not exist yet.
  std::optional<std::uint64_t> made_unless_making();

  // A thread was made, or could not be: it has not begun.
  void note_unborn(int change);

 private:
  void serve_requests();
  void make_for_wanted();
  void make_spares(int count);
  [[nodiscard]] bool make();
  bool is_making();
  bool lacks_threads();
  bool lacks_spares(int count);
  P* pop_wanted();
  P* unlink_wanted_locked(P** link) MAGPIE_REQUIRES(lock_);

  bool is_there_ = false;  // fixed while goroutines run
  pthread_t thread_{};
  base::Event asked_;
  base::Atomic<bool> dump_wanted_{false};  // atomic, a hint: the event orders

  base::Lock lock_;
  P* wanted_ MAGPIE_GUARDED_BY(lock_) = nullptr;  // Ps that wait for a thread
  base::Relaxed<int> wanted_count_ = 0;      // of them; written under lock_, may be read without
  int unborn_ MAGPIE_GUARDED_BY(lock_) = 0;  // threads that were made and have not begun
  int spares_wanted_ MAGPIE_GUARDED_BY(lock_) = 0;
  bool refresh_wanted_ MAGPIE_GUARDED_BY(lock_) = false;
  bool stop_ MAGPIE_GUARDED_BY(lock_) = false;
  int making_ MAGPIE_GUARDED_BY(lock_) = 0;          // threads that are in make()
  std::uint64_t made_ MAGPIE_GUARDED_BY(lock_) = 0;  // times that a thread left make()
};

}  // namespace magpie::sched
