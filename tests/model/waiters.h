// waiters.h: what the models of locks stand on: memory that may be gone, the lock of a list, the
// list, wake-ups.
//
// They are made of what Relacy gives, not of base::Atomic. So a mutant of the atomics weakens the
// protocol and not its surroundings, and nobody spins: what is explored is the protocol.
#pragma once

#include "model_atomic.h"

namespace model {

// Stands for the memory of what is destroyed. A use that may come later is an error.
class Memory {
 public:
  Memory() { alive_(RL_INFO) = 1; }
  void touch() { RL_ASSERT(alive_(RL_INFO) == 1); }
  void destroy() {
    touch();  // once only
    alive_(RL_INFO) = 0;
  }
  void expect_destroyed() { RL_ASSERT(alive_(RL_INFO) == 0); }

 private:
  rl::var<int> alive_;
};

// The lock of a list, in the memory of what the list belongs to.
class ListLock {
 public:
  explicit ListLock(Memory& memory) : memory_(memory) {}
  void lock() {
    mutex_.lock(RL_INFO);
    memory_.touch();
  }
  void unlock() {
    memory_.touch();
    mutex_.unlock(RL_INFO);
  }

 private:
  Memory& memory_;
  rl::mutex mutex_;
};

// Waiters by number, in the order of a line. Guarded by the list's lock: its variables show if not.
class Line {
 public:
  Line() { length_(RL_INFO) = 0; }
  int size() { return length_(RL_INFO); }
  int at(int place) { return line_[place](RL_INFO); }
  int first() { return size() == 0 ? -1 : at(0); }  // -1: nobody
  void push_back(int who) {
    int n = size();
    line_[n](RL_INFO) = who;
    length_(RL_INFO) = n + 1;
  }
  void push_front(int who) {
    int n = size();
    for (int i = n; i > 0; --i) line_[i](RL_INFO) = line_[i - 1](RL_INFO);
    line_[0](RL_INFO) = who;
    length_(RL_INFO) = n + 1;
  }
  // False: it is not there.
  bool remove(int who) {
    int n = size(), at = 0;
    while (at < n && line_[at](RL_INFO) != who) ++at;
    if (at == n) return false;
    for (; at + 1 < n; ++at) line_[at](RL_INFO) = line_[at + 1](RL_INFO);
    length_(RL_INFO) = n - 1;
    return true;
  }

 private:
  static constexpr int kMost = 4;
  rl::var<int> length_;
  rl::var<int> line_[kMost];
};

// What ends one waiter's sleep. Each send() ends one wait(), also one that begins later.
class WakeUp {
 public:
  WakeUp() { event_.init(false, false, RL_INFO); }
  ~WakeUp() { event_.deinit(RL_INFO); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;
  void wait() { event_.wait(false, false, RL_INFO); }
  void send() { event_.set(RL_INFO); }

 private:
  rl::generic_event event_;
};

}  // namespace model
