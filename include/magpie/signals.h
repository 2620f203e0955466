// signals.h: the signals of the process arrive in a channel.
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
#include <magpie/detail/api.h>

namespace magpie {

namespace detail {
struct SignalSubscription;  // src/flow/signals.cc
}

// While a Signals object lives, its signals do not have their usual effect on the process: they are
// sent to the object's channel. The channel holds at most one of each kind. A signal that arrives
// while another of its kind is still in the channel merges with it, as in the kernel; no kind is
// ever lost. Several objects may have the same signal: each gets it.
//
// May be made and used at any time, before, in, between and after run(), and from any thread.
// Movable. When the last object for a signal ends, the signal has its former effect again. Every
// signal that came until then is in a channel, or has had that effect. An object in a goroutine
// that run() drops never ends: keep it in main, or outside of run(). The child of a fork() has
// none.
//
// Waiting for a signal is no deadlock. While no goroutine waits for one, the runtime still reports
// deadlocks.
class MAGPIE_API Signals {
 public:
  // Throws std::invalid_argument for an empty list and for a signal that cannot be had: SIGKILL and
  // SIGSTOP, the signals of faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS), SIGURG and
  // Options::preempt_signal, by which the runtime preempts, and numbers that are no signal. Throws
  // std::system_error if no thread can be made: the first object makes a thread, which stays. Never
  // blocks.
  explicit Signals(std::span<const int> signals);
  explicit Signals(std::initializer_list<int> signals)
      : Signals(std::span(signals.begin(), signals.size())) {}

  Signals(Signals&&) noexcept;
  Signals& operator=(Signals&& other) noexcept;
  // Closes the channel: receivers get what is in it, then nullopt. Never blocks.
  ~Signals();

  // Receives the numbers of signals. Do not send on it.
  const Chan<int>& channel() const noexcept { return channel_; }

 private:
  void end() noexcept;

  Chan<int> channel_;
  std::unique_ptr<detail::SignalSubscription> subscription_;  // null: moved from
};

// As Signals(signals), under the name that Go programmers look for.
[[nodiscard]] inline Signals signal_channel(std::initializer_list<int> signals) {
  return Signals(signals);
}

}  // namespace magpie
