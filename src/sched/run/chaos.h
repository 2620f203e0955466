// chaos.h: MAGPIE_DEBUG=chaos=SEED: the runtime chooses as badly as it may.
//
// What threads do one after the other most of the time is done in other orders here, so that a test meets them within seconds:
//   disturb()      between two steps of a protocol: the thread is late by a random time, from none to 100 microseconds
//   one_in(n)      where the runtime may choose: a thief comes back with nothing, a poll finds nobody, a goroutine leaves by
//                  way of the loop, or queues up for a P at an entry although it has one
//   muddle(p)      what a P counts up or down to: turns until the global queue, runnext's streak, the spawner's slice
//   scatter(m)     all that is in a P's queue spills
//   be_born_late() a new thread takes up to two milliseconds to begin
//   mood()         sysmon's part: for some milliseconds it is as usual, or slow, or takes Ps from whoever is outside, asks for
//                  them and thinks better of it, stops threads that need not be stopped, and wakes for no reason, every few
//                  tens of microseconds
// Nothing that is allowed is made impossible, only unlikely things likely. Fast paths know nothing of it: what it sets makes
// them take their slow ways, and those ask here, one predictable branch while it is off.
// The same seed gives the same choices to the same sequence of questions; who asks first is up to the kernel.
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

  // Anyone, with or without a P, also with locks of the runtime and in the signal handler.
  void disturb() {
    if (is_on()) [[unlikely]]
      disturb_now();
  }
  // Anyone. Never while it is off.
  [[nodiscard]] bool one_in(std::uint32_t n) { return is_on() && below(n) == 0; }

  // The holder of the P.
  void muddle(P* p) {
    if (is_on()) [[unlikely]]
      muddle_now(p);
  }

  // The same, in a goroutine's call or in the loop: sometimes all that is in the P's queue spills.
  void scatter(M* m) {
    if (one_in(8)) [[unlikely]]
      scatter_now(m);
  }

  // A thread that has no P yet.
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
  base::Atomic<std::uint64_t>
      state_;  // atomic: relaxed, the generator; only that all differ counts

  // sysmon only
  Mood mood_ = Mood::usual;
  std::int64_t mood_until_ns_ = 0;
};

}  // namespace magpie::sched
