// poller.h: the kernel's list of descriptors and the events that it has for us.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "base/atomic.h"
#include "poll/interruption.h"
#include "poll/slot.h"

namespace magpie::poll {

class Poller {
 public:
  Poller() = default;
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // All return 0 or an error number.
  [[nodiscard]] int open();
  // Registers a descriptor once for both directions, edge-triggered. A descriptor that is ready
  // already has an event at once.
  [[nodiscard]] int add(int fd, Tag tag);
  void remove(int fd);

  // Blocks until there are events, interrupt() was called, or the time (base::now_ns) has come;
  // kAtOnce: does not block. Returns how many of `events` were filled, each with a Tag; none after
  // an interruption.
  static constexpr std::int64_t kAtOnce = 0;
  std::size_t wait(std::span<epoll_event> events, std::int64_t until_ns);

  // The thread that blocks in wait(), or the next that would, returns. From any thread.
  void interrupt();

 private:
  static constexpr std::uint64_t kInterruption = ~std::uint64_t{0};

  int wait_once(std::span<epoll_event> events, std::int64_t until_ns);

  int epoll_ = -1;
  int event_ = -1;
  Interruption interruption_;  // [interrupt]
  // atomic, a hint: the kernel has no time-outs below a millisecond
  base::Atomic<bool> coarse_{false};
};

}  // namespace magpie::poll
