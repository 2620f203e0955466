// chaos.h: MAGPIE_DEBUG=chaos=SEED: the runtime chooses as badly as it may.
//
// Threads mostly do their steps in the same order. Here they do them in other orders, so that a
// test meets these within seconds:
//   disturb()      between two steps of a protocol: the thread is late by a random time, from none
//                  to 100 microseconds, or as long as the system runs others instead
//   one_in(n)      where the runtime may choose: a thief comes back with nothing, a poll finds
//                  nothing, a goroutine switches by way of the loop, or queues up for a P at an
//                  entry although it has one
//   muddle(p)      what a P counts down: turns to the look around, to the look at the clock, to the
//                  exact look at timers; the end of the chain, and of the spawner's slice
//   scatter(m)     everything in a P's queue spills
//   be_born_late() a new thread takes up to two milliseconds to begin
//   mood()         sysmon's part: for some milliseconds it is as usual, or slow, or hasty. Hasty:
//                  every few tens of microseconds it takes Ps from Ms that are outside, asks for Ps
//                  and withdraws, stops threads that need not be stopped, wakes for no reason
// Everything that is allowed stays possible; only unlikely things become likely. Fast paths know
// nothing of chaos. The values that it sets make them take their slow ways. The slow ways ask here,
// which costs one predictable branch while chaos is off. The same seed gives the same choices to
// the same sequence of questions. The kernel decides which thread asks first.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

struct M;
struct P;

class Chaos {
 public:
  explicit Chaos(std::uint64_t seed) : seed_(seed), state_(seed) {}  // 0: off

  bool is_on() const { return seed_ != 0; }

  // Anyone may call this, with or without a P, also with locks of the runtime and in the signal
  // handler.
  void disturb() {
    if (is_on()) [[unlikely]]
      disturb_now();
  }
  // Anyone. Never true while chaos is off.
  [[nodiscard]] bool one_in(std::uint32_t n) { return is_on() && below(n) == 0; }

  // The holder of the P calls this.
  void muddle(P* p) {
    if (is_on()) [[unlikely]]
      muddle_now(p);
  }

  // The same, in a goroutine's call or in the loop. Sometimes everything in the P's queue spills.
  void scatter(M* m) {
    if (one_in(8)) [[unlikely]]
      scatter_now(m);
  }

  // For a thread that has no P yet.
  void be_born_late() {
    if (is_on()) [[unlikely]]
      sleep_up_to(kLatestBirthNs);
  }

  // Sysmon only.
  enum class Mood { usual, slow, hasty };
  Mood mood(std::int64_t now_ns);

  [[nodiscard]] std::uint32_t below(std::uint32_t n);
  void sleep_up_to(std::int64_t ns);

 private:
  static constexpr std::int64_t kLatestBirthNs = 2'000'000;

  [[gnu::noinline]] void disturb_now();
  [[gnu::noinline]] void muddle_now(P* p);
  [[gnu::noinline]] static void scatter_now(M* m);

  const std::uint64_t seed_;
  base::Atomic<std::uint64_t> state_;  // atomic, a count: of random numbers drawn
  // atomic, a hint: no disturb() gives the CPU away before
  base::Atomic<std::int64_t> next_wait_ns_{0};

  // sysmon only
  Mood mood_ = Mood::usual;
  std::int64_t mood_until_ns_ = 0;
};

}  // namespace magpie::sched
