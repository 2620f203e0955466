// per_process.h: an object of which each process has its own, also the child of a fork().
//
// The first caller makes it. It is never destroyed, as threads may need it while the program ends.
// At a fork() other threads may be in the middle of the parent's object, so the child gets a new
// one.
//
// Not a static of a function: the compiler guards it by a lock. A thread that calls
// pthread_atfork() in the initialiser waits while another one forks. Then the child would find that
// lock taken, and wait for ever. So handlers are registered while the program is loaded:
//
//     constinit base::PerProcess<List> lists;
//     const int at_forks = pthread_atfork(nullptr, nullptr, [] { lists.renew_in_child(); });
#pragma once

#include "base/atomic.h"

namespace magpie::base {

// T(T*) gets the parent's object, or null, and keeps the pointer. So the parent's object is no
// leak.
template <class T>
class PerProcess {
 public:
  T& get() {
    T* current = current_.load(acquire);
    if (current != nullptr) return *current;
    T* made = new T(nullptr);
    if (current_.compare_exchange_strong(current, made, acq_rel, acquire)) return *made;
    delete made;
    return *current;
  }

  void renew_in_child() {
    T* of_parent = current_.load(relaxed);  // there is no other thread
    if (of_parent != nullptr) current_.store(new T(of_parent), relaxed);
  }

 private:
  Atomic<T*> current_{nullptr};  // atomic, published: by the first caller, and in the child
};

}  // namespace magpie::base
