// threads.h: makes OS threads for the scheduler, and does without when there are no more.
//
// A thread is made for a P that has, or may find, work. If the limit is reached or the system
// refuses, nothing is lost: the P goes back to the idle list, its queued goroutines to the global
// queue, and the threads there are do the work. A line on stderr says so once. The next try comes
// after a pause, so that failing calls do not keep a starved process busy.
//
// The maker makes them: maker.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/atomic.h"
#include "base/lock.h"
#include "sched/core/m.h"
#include "sched/rest/wake.h"
#include "sched/threads/maker.h"

namespace magpie::sched {

class Threads {
 public:
  explicit Threads(int limit) : limit_(limit) {}
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Makes the calling thread an M. Throws std::bad_alloc.
  M* adopt_caller();

  Maker maker;

  // A thread that takes this P, or finds it taken back, will be made. False: there is none to be
  // had.
  [[nodiscard]] bool start(P* p, Searching searching);

  // Asks for threads that go to sleep at once, so that there are some to hand Ps to: one for each
  // of `waiting` goroutines, at least one and at most `most`. Threads that sleep or are being made
  // count.
  static constexpr std::size_t kMostSpares = 16;  // when many goroutines block
  void start_spares(std::size_t waiting, std::size_t most);

  // Makes a thread. The maker calls this, or an M if there is no maker. False: there is none to be
  // had.
  [[nodiscard]] bool make();

  // Waits for all threads made by start() to end.
  void join_all();

  // Calls f(m) for every M.
  template <class F>
  void for_each(F f) {
    for (M* m = newest_.load(base::acquire); m != nullptr; m = m->older) f(m);
  }

  // m's thread is about to end before the runtime does, or never was.
  void note_ended(M* m);

  // Some thread that note_ended() was called for is still there. It may run destructors of the
  // program's thread_locals.
  [[nodiscard]] bool some_are_leaving();

  // There are no more to be had, as far as the last tries have shown.
  bool are_refused() const;

  int count() const { return count_.load(base::relaxed); }
  int helpers() const { return maker.is_there() ? 1 : 0; }  // threads that are no Ms
  int limit() const { return limit_.load(base::relaxed); }
  int set_limit(int limit) { return limit_.exchange(limit, base::relaxed); }

 private:
  friend struct Layout;  // run/layout.h

  static constexpr std::int64_t kRetryAfterNs = 1'000'000;
  static constexpr std::int64_t kRefusalLastsNs = 20'000'000;  // sysmon tries more often
  static constexpr std::uint32_t kFirstSpinBudget = 16;

  static std::unique_ptr<M> new_m();
  M* reuse_ended();
  static void prepare(M* m);
  bool may_try_now() const;
  bool is_full();
  void complain(const char* why);
  M* publish(std::unique_ptr<M> m);

  base::Atomic<int> count_{0};                 // atomic, a count: read by anyone
  base::Atomic<int> limit_;                    // atomic, a hint: a wish
  base::Atomic<std::int64_t> retry_at_ns_{0};  // atomic, a hint: a date
  base::Atomic<bool> complained_{false};       // atomic, a hint: once is enough
  base::Atomic<M*> newest_{nullptr};           // atomic, published: by makers; Ms stay

  base::Lock lock_;  // guards M::has_ended and the making of newest_ and count_
};

// The calling thread, m's, is going to sleep until a timer is due. Others need no timers, and what
// a goroutine sleeps by itself may be put together by the kernel with other wake-ups as usual.
void be_punctual(M* m);

// The calling thread ceases to be an M.
void end_m(M* m);

}  // namespace magpie::sched
