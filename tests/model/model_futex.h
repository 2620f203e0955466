// model_futex.h: the kernel under base::Lock and base::Event in a model: for one word of each
// scenario.
//
// Compare and sleep are one step, under the kernel's lock. A time-out comes at any moment, or
// never.
//
// Mutants, for a model that names them:
//   MUTANT_NO_COMPARE   the kernel lets a thread sleep without looking at the word
//   MUTANT_NO_WAKE      nobody is woken
#pragma once

#include "model_atomic.h"

namespace model {

// A member of the scenario.
class Futex {
 public:
  Futex() { its_ = this; }
  Futex(const Futex&) = delete;
  Futex& operator=(const Futex&) = delete;
  ~Futex() { its_ = nullptr; }

  static Futex& get() { return *its_; }

  void wait(const Atomic<std::uint32_t>& word, std::uint32_t expected) {
    lock_.lock(RL_INFO);
    if (word.peek() == expected || chosen<"MUTANT_NO_COMPARE">()) sleepers_.wait(lock_, RL_INFO);
    lock_.unlock(RL_INFO);
  }
  void wake_one() {
    if (chosen<"MUTANT_NO_WAKE">()) return;
    lock_.lock(RL_INFO);
    sleepers_.notify_one(RL_INFO);
    lock_.unlock(RL_INFO);
  }

 private:
  static inline Futex* its_ = nullptr;
  rl::mutex lock_;
  rl::condition_variable sleepers_;
};

}  // namespace model

namespace magpie::base {

inline void futex_wait(const model::Atomic<std::uint32_t>& word, std::uint32_t expected) {
  model::Futex::get().wait(word, expected);
}
inline void futex_wait_until(const model::Atomic<std::uint32_t>& word, std::uint32_t expected,
                             std::int64_t) {
  if (rl::rand(2) == 1) model::Futex::get().wait(word, expected);
}
inline void futex_wake(const model::Atomic<std::uint32_t>&, int) { model::Futex::get().wake_one(); }

}  // namespace magpie::base
