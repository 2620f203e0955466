// descriptor.h: a file descriptor that goroutines wait for.
//
// Reading and writing are two sides, each with a turn (a Mutex), a deadline and a readiness word. An operation takes its
// side's turn, tries the system call, which never blocks, and waits for an event when there is nothing to do. So
// at most one waits in each word, and several readers, or writers, do not mix.
// The descriptor is registered with the poller when somebody has to wait for the first time.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <magpie/mutex.h>

#include "base/lock.h"
#include "io/closing.h"
#include "io/deadline.h"
#include "io/registration.h"
#include "poll/slot.h"
#include "sched/presence.h"
#include "sched/wait_reason.h"

namespace magpie::io {

class Descriptor {
 public:
  enum class Kind : std::uint8_t {
    stream,  // a read that returns less than was asked for leaves nothing behind, but for urgent data
    packets,  // it may: also a stream of a Unix socket, where reads stop at bytes that carry descriptors
    borrowed  // as packets, and is not ours to close
  };

  // Takes the number over; it must not block.
  Descriptor(int fd, Kind kind);
  // Closes it. Whoever is inside is woken and leaves first.
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  struct Side;
  enum class Registered { already, now, no_runtime };

  // A side's turn: from begin to end nobody else uses that side.
  class Turn {
   public:
    // Blocks until those before are done. Throws std::system_error: operation_canceled after close().
    Turn(Descriptor& descriptor, Side& side, const char* what);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Calls attempt(fd), which returns a count or a negative error number, until it does not say EAGAIN; blocks meanwhile.
    // Returns the count. Throws std::system_error. A `wanted` tells how many bytes a read asks for.
    template <class Attempt>
    std::size_t perform(Attempt attempt, std::size_t wanted = 0) {
      for (;;) {
        if (prepare()) {
          ssize_t result = try_once(attempt, descriptor_.fd_);
          if (result >= 0) {
            note_result(static_cast<std::size_t>(result), wanted);
            return static_cast<std::size_t>(result);
          }
          if (result != -EAGAIN) {
            if (result != -EINTR) fail(static_cast<int>(-result));
            continue;
          }
        }
        wait();
      }
    }

   private:
    // The attempt looks at errno. A compiler may keep its address over wait(), after which the thread may be another; not
    // over a call, so there is one.
    template <class Attempt>
    [[gnu::noinline]] static ssize_t try_once(Attempt& attempt, int fd) {
      return attempt(fd);
    }

    bool prepare();
    void wait();
    Registered sleep_unless_new(int& error);
    void note_result(std::size_t count, std::size_t wanted);
    [[noreturn]] void fail(int error) const;

    Descriptor& descriptor_;
    Side& side_;
    const char* const what_;
    const Closing::User user_;
  };

  struct Side {
    Side(Descriptor& its, poll::Readiness poll::Slot::*word, sched::WaitReason why)
        : descriptor(its), readiness(word), reason(why), deadline(wake_waiter, this) {}
    static void* wake_waiter(void* side);

    Descriptor& descriptor;
    poll::Readiness poll::Slot::*const readiness;
    const sched::WaitReason reason;
    Mutex turn;
    Deadline deadline;
    bool drained = false;  // whoever has the turn: the last read took all there was
    // atomic: whoever has the turn writes the run() of the goroutine that has it; 0: a plain thread, or nobody. A later run() reads
    base::Relaxed<std::uint64_t> run_of_holder = 0;
    int threads =
        0;  // guarded by the descriptor's lock: plain threads that have the turn or wait for it
  };

  Side& reader() { return reader_; }
  Side& writer() { return writer_; }

  // From then on, also for whoever waits already, operations fail with errc::timed_out. timer::kNever: no deadline.
  void set_deadline(Side& side, std::int64_t when_ns);

  // Wakes whoever is inside; they fail with errc::operation_canceled. The number is given back when the last has left.
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
  void wake(Side& side);
  void give_number_back();

  const int fd_;
  const Kind kind_;
  Closing closing_;            // [closing]
  base::Lock lock_;            // guards the registration
  Registration registration_;  // [registration]
  Side reader_, writer_;
};

}  // namespace magpie::io
