// watcher.h: a thread of the runtime's own that dumps and reports, beside everything else.
//
//   SIGQUIT        the handler asks the maker, which makes the watcher if there is none yet
//   blocked        Options::report_blocked_after: looks at all goroutines now and then (age.h)
//   slow           Options::report_slow, MAGPIE_DEBUG=slow=...: sysmon tells it of a goroutine that
//                  keeps its thread; the watcher asks the thread for its stack at once
//
// It allocates and takes locks, so it is none of the threads that others need.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "base/atomic.h"
#include "base/event.h"
#include "base/lock.h"
#include "sched/core/m.h"

namespace magpie::sched {

class Watcher {
 public:
  Watcher(std::int64_t report_blocked_ns, std::int64_t slow_ns)
      : report_blocked_ns_(report_blocked_ns), slow_ns_(slow_ns) {}

  // Before goroutines run: makes the thread if the options ask for it.
  void start_if_needed();
  // By the maker, or when no other thread is left.
  void dump_soon();
  void stop();

  int helpers() const { return is_there_.load(base::relaxed) ? 1 : 0; }
  std::int64_t slow_ns() const { return slow_ns_; }

  // By sysmon: the goroutine on m has run, or blocked, for that long. Never blocks.
  void note_slow(M* m, std::int64_t for_ns, bool blocks);

 private:
  static constexpr std::size_t kMostSlow = 16;
  struct Slow {
    M* m;
    const G* g;  // its record stays, it may be another goroutine's by now
    std::uint64_t id;
    std::int64_t for_ns;
    bool blocks;
  };

  void make();
  void run();
  void dump();
  void look_for_blocked();
  bool may_report_blocked();
  struct Named;
  static void look_at_name(void* looking);
  void report(const Slow& slow);
  bool take_slow(Slow& slow);

  const std::int64_t report_blocked_ns_;
  const std::int64_t slow_ns_;
  pthread_t thread_{};
  base::Event event_;
  base::Atomic<bool> is_there_{false};     // atomic, a hint: the maker, or run(), writes
  base::Atomic<bool> stop_{false};         // atomic, a hint: the event orders
  base::Atomic<bool> dump_wanted_{false};  // atomic, a hint: the event orders

  base::Lock slow_lock_;
  Slow slow_[kMostSlow] MAGPIE_GUARDED_BY(slow_lock_);
  std::size_t slow_count_ MAGPIE_GUARDED_BY(slow_lock_) = 0;

  // the thread's own
  std::int64_t second_ns_ = 0;  // when the second began in which reports are counted
  int reports_ = 0;
  std::int64_t reported_[64] = {};  // goroutines whose wait has been reported
  std::size_t next_reported_ = 0;
  std::int64_t minute_ns_ = 0;  // the same for reports of waits
  std::size_t blocked_reports_ = 0;
};

// SIGQUIT asks for a dump while a runtime runs, unless the program handles it itself.
void install_quit_handler();
void remove_quit_handler();

}  // namespace magpie::sched
