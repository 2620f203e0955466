// threads.h: makes OS threads for the scheduler, and does without when there are no more.
//
// A thread is made for a P that has, or may find, work. If the limit is reached or the system refuses, nothing is
// lost: the P goes back to the idle list, its queued goroutines to the global queue, and the threads there are do
// the work. Said once on stderr. The next try is made after a pause, so that a starved process is not kept
// busy with failing calls.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/atomic.h"
#include "base/lock.h"
#include "sched/m.h"
#include "sched/wake.h"

namespace magpie::sched {

class Threads {
 public:
  explicit Threads(int limit) : limit_(limit) {}

  // Makes the calling thread an M. Throws std::bad_alloc.
  M* adopt_caller();

  // A new thread that starts with this P. False: there is none to be had.
  [[nodiscard]] bool start(P* p, Searching searching);

  // Waits for all threads made by start() to end.
  void join_all();

  int count() const { return count_.load(base::relaxed); }
  int limit() const { return limit_.load(base::relaxed); }
  int set_limit(int limit) { return limit_.exchange(limit, base::relaxed); }

 private:
  static constexpr std::int64_t kRetryAfterNs = 1'000'000;
  static constexpr std::uint32_t kFirstSpinBudget = 16;

  std::unique_ptr<M> new_m();
  bool may_try_now() const;
  void complain_locked(const char* why);

  base::Atomic<int> count_{0};                 // atomic: changed under lock_, read by anyone
  base::Atomic<int> limit_;                    // atomic: relaxed, a wish
  base::Atomic<std::int64_t> retry_at_ns_{0};  // atomic: relaxed, a hint

  base::Lock lock_;
  // guarded by lock_
  std::vector<std::unique_ptr<M>> ms_;
  bool complained_ = false;
};

// The calling thread ceases to be an M.
void end_m(M* m);

}  // namespace magpie::sched
