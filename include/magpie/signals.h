// signals.h: the process's signals arrive in a channel.
//
//   Signals signals({SIGTERM, SIGINT});
//   std::optional<int> which = signals.channel().recv();
#pragma once

#include <magpie/detail/cxx20.h>

#include <csignal>
#include <initializer_list>
#include <memory>
#include <span>

#include <magpie/chan.h>

namespace magpie {

namespace detail {
struct SignalSubscription;  // src/flow/signals.cc
}

// While one lives, its signals do not do what they would do to the process: they are sent to its
// channel. Of each kind there is at most one in the channel: one that comes while another of its
// kind has not been received is the same, as the kernel has it, and no kind is ever lost. Several
// may have the same signal: each gets it.
//
// May be made and used at any time, before, in, between and after run(), and from any thread.
// Moves. When the last that has a signal ends, the signal does what it did before: whatever came
// until then is in a channel or does that. One in a goroutine that run() drops never ends: keep it
// in main, or outside of run(). The child of a fork() has none.
//
// Waiting for a signal is no deadlock; while nobody waits for one, deadlocks are still reported.
class Signals {
 public:
  // Throws std::invalid_argument for no signal at all, or one that cannot be had: SIGKILL and
  // SIGSTOP, those that tell of faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS), SIGURG
  // and Options::preempt_signal, by which the runtime preempts, and numbers that are none. Throws
  // std::system_error if no thread can be made: the first one makes a thread that stays. Does not
  // block.
  explicit Signals(std::span<const int> signals);
  explicit Signals(std::initializer_list<int> signals)
      : Signals(std::span(signals.begin(), signals.size())) {}

  Signals(Signals&&) noexcept;
  Signals& operator=(Signals&& other) noexcept;
  // Closes the channel: receivers get what is in it, then nothing. Does not block.
  ~Signals();

  // Numbers of signals, to receive only.
  const Chan<int>& channel() const noexcept { return channel_; }

 private:
  void end() noexcept;

  Chan<int> channel_;
  std::unique_ptr<detail::SignalSubscription> subscription_;  // null: moved from
};

// The same by the name that Go's programmers look for: auto signals = signal_channel({SIGTERM,
// SIGINT});
[[nodiscard]] inline Signals signal_channel(std::initializer_list<int> signals) {
  return Signals(signals);
}

}  // namespace magpie
