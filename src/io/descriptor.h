// descriptor.h: a file descriptor that goroutines wait for.
//
// Reading and writing are two sides, each with a mutex, a deadline and a readiness word.
// An operation locks its side and tries the system call, which never blocks. If there
// is nothing to do, it waits for an event. So at most one caller waits in each word, and several
// readers, or writers, do not mix. The first caller that has to wait registers the descriptor with
// the poller.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <magpie/mutex.h>

#include "base/lock.h"
#include "io/closing.h"
#include "io/deadline.h"
#include "io/limit.h"
#include "io/registration.h"
#include "poll/slot.h"
#include "sched/presence.h"
#include "sched/wait_reason.h"

namespace magpie::io {

class Descriptor {
 public:
  enum class Kind : std::uint8_t {
    // A read that returns less than was asked for leaves nothing behind, except urgent data.
    stream,
    // It may leave something. Also a stream of a Unix socket, where a read stops at bytes that
    // carry descriptors.
    packets,
    // As packets, and the number is not ours to close.
    borrowed
  };

  // Takes the number over; it must not block.
  Descriptor(int fd, Kind kind);
  // Closes it. Wakes its users and waits until they have finished.
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  struct Side;
  class Interruption;
  enum class Registered { already, now, no_runtime };

  // One call on a side: from begin to end it has the side for itself.
  class Operation {
   public:
    // Blocks until the operations before it are done. `what` is for errors of the caller, `limit`,
    // if there is one, ends the waits. If it cannot begin, perform() says why.
    Operation(Descriptor& descriptor, Side& side, const char* what, const Limit* limit = nullptr);
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    // Calls attempt(fd), which returns a count or a negative error number, until it does not say
    // EAGAIN; blocks meanwhile. The error is what the attempt said, ECANCELED after close(),
    // ETIMEDOUT when the deadline has passed, or the limit's. After one all others fail alike. A
    // `wanted` tells how many bytes a read asks for. Throws std::logic_error if no runtime runs.
    template <class Attempt>
    Outcome perform(Attempt attempt, std::size_t wanted = 0) {
      while (error_ == 0) {
        if (prepare()) {
          ssize_t result = try_once(attempt, descriptor_.fd_);
          if (result >= 0) {
            note_result(static_cast<std::size_t>(result), wanted);
            return {static_cast<std::size_t>(result), 0};
          }
          if (result != -EAGAIN) {
            if (result != -EINTR) error_ = static_cast<int>(-result);
            continue;
          }
        }
        if (error_ == 0) wait();
      }
      return {0, error_};
    }

   private:
    // The attempt looks at errno. A compiler may keep its address over wait(), after which the
    // thread may be another; not over a call, so there is one.
    template <class Attempt>
    [[gnu::noinline]] static ssize_t try_once(Attempt& attempt, int fd) {
      return attempt(fd);
    }

    void end_use();
    bool prepare();
    void wait();
    Registered sleep_unless_new(int& error);
    void note_result(std::size_t count, std::size_t wanted);

    Descriptor& descriptor_;
    Side& side_;
    const char* const what_;
    const Limit* const limit_;
    const Closing::User user_;
    int error_ = 0;
    bool has_side_ = false;
  };

  // For calls that do not block and use no side: meanwhile the number is no other file's.
  class KeptOpen {
   public:
    explicit KeptOpen(Descriptor& descriptor);
    ~KeptOpen();
    KeptOpen(const KeptOpen&) = delete;
    KeptOpen& operator=(const KeptOpen&) = delete;

    // False: closed.
    explicit operator bool() const { return is_inside_; }
    // Not inlined: it looks at errno; see Operation.
    template <class F>
    [[gnu::noinline]] auto call(F f) const {
      return f(descriptor_.fd_);
    }

   private:
    Descriptor& descriptor_;
    const Closing::User user_;
    const bool is_inside_;
  };

  struct Side {
    Side(Descriptor& its, poll::Readiness poll::Slot::*word, sched::WaitReason why);
    ~Side();
    static void* wake_waiter(void* side);

    Descriptor& descriptor;
    poll::Readiness poll::Slot::*const readiness;
    const sched::WaitReason reason;
    Mutex mutex;
    Deadline deadline;
    bool drained = false;  // by the operation that has the side: the last read took everything
    // atomic: the operation that has the side writes its run(), later ones read it; 0: a plain
    // thread has the side, or nobody
    base::Relaxed<std::uint64_t> run_of_holder = 0;
    // guarded by the descriptor's lock: plain threads that have the side or wait for it
    int threads = 0;
    // By the operation that has the side: wakes it when its limit is over. In memory of its own: it
    // outlives a goroutine that run() drops.
    std::unique_ptr<Interruption> interruption;
  };

  Side& reader() { return reader_; }
  Side& writer() { return writer_; }

  // From then on operations fail with errc::timed_out, also operations that wait already.
  // timer::kNever: no deadline.
  void set_deadline(Side& side, std::int64_t when_ns);

  // Wakes all users, which fail with errc::operation_canceled. The last one to finish gives the
  // number back.
  void close();
  bool is_closed() const { return closing_.is_closed(); }

  // For calls that do not block. -1 after close().
  int fd() const { return is_closed() ? -1 : fd_; }

  Kind kind() const { return kind_; }

 private:
  Registered register_once(sched::Presence& here, int& error);
  poll::Slot* slot_of(const sched::Presence& here);
  Closing::User forget_earlier_run();
  void count_thread(Side& side, int change);
  struct LeftBehind;
  [[gnu::noinline]] void forget_earlier_runs();
  void forget_run(std::uint64_t run, std::uint64_t now, LeftBehind& left);
  void wake(Side& side);
  void give_number_back();

  const int fd_;
  const Kind kind_;
  // atomic, published: by the first user in a run(), under lock_, after it has forgotten the users
  // of earlier ones
  base::Atomic<std::uint64_t> run_of_users_{0};
  Closing closing_;            // [closing]
  base::Lock lock_;            // guards the registration
  Registration registration_;  // [registration]
  Side reader_, writer_;
};

}  // namespace magpie::io
