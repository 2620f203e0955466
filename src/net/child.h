// child.h: a child process, as its waiters and its reaper share it.
//
// The kernel tells by a pidfd that a child has ended. One goroutine for each child, the reaper,
// waits for that, takes the exit status and closes a channel, at which any number of goroutines
// wait, with contexts and deadlines. So no zombie waits for somebody to ask. A plain thread waits
// for the pidfd itself: the reaper may be dropped with its run(). The first of them to find that
// the child has ended takes the status under the mutex.
//
// All children that have not been reaped are on a list; spawn() looks at those that have no reaper,
// or whose reaper was dropped. The pidfd is closed as soon as the status is known.
//
// The child of a fork() has a list of its own. Those of its parent are not its children: for it
// they have no status, and it does not touch their mutexes, which may be locked for ever.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include <magpie/chan.h>
#include <magpie/context.h>
#include <magpie/process.h>

#include "io/descriptor.h"

namespace magpie::detail {

class Child : public std::enable_shared_from_this<Child> {
 public:
  // Of a process that was just made: puts it on the list. Does not wait for anything, so that it
  // may be called in blocking(). The process is killed if that fails. Throws std::system_error,
  // std::bad_alloc.
  static std::shared_ptr<Child> adopt(pid_t id);
  // Starts a reaper if a runtime runs. The process is killed if that fails. Throws std::bad_alloc.
  void watch();
  // Reaps the children that nobody waits for.
  static void reap_orphans();

  explicit Child(pid_t id);  // only adopt() calls it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t id() const { return id_; }

  // Blocks until it has ended, the context is over or the time has come. Whether it has ended.
  bool wait(const Context& context, DeadlineNs deadline);
  // Once it has ended. Throws std::system_error if somebody else took it.
  ExitStatus status() const;
  // An error number; 0 also if it has ended.
  int send(int signal);

 private:
  bool is_of_parent() const;
  bool try_reap();
  void finish();
  void start_reaper();
  void reap();
  bool wait_on_thread(const Context& context, DeadlineNs deadline);

  const pid_t id_;
  const int forks_;  // before it was made: see is_of_parent()
  io::Descriptor pidfd_;
  const Chan<void> ended_;

  // Nobody calls the runtime with it: a goroutine that did could be dropped there.
  mutable std::mutex mutex_;
  // guarded by mutex_
  bool is_over_ = false;
  ExitStatus status_;
  int error_ = 0;                 // why there is no status
  std::uint64_t reaper_run_ = 0;  // the run() that has a reaper
};

}  // namespace magpie::detail
