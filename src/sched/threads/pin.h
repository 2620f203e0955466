// pin.h: Options::pin. The thread that holds a P runs on the CPU that the P is at home on.
//
// Each way to get a P goes through bind(): hand-offs, stops, and a change of the number of Ps. A
// thread without a P keeps the CPU of the last one: it blocks, or ends soon.
#pragma once

#include <sched.h>

namespace magpie::sched {

struct M;

class Pins {
 public:
  explicit Pins(bool are_wanted) : are_wanted_(are_wanted) {}

  // Remembers the CPUs that the calling thread may use. Before the world begins, or while it is
  // stopped. The threads are bound anew when they get a P next.
  void prepare();

  // The calling thread, which is m's, now holds m->p.
  void bind(M* m) const {
    if (are_wanted_) [[unlikely]]
      bind_slow(m);
  }

  // By m's thread, with or without a P. release: it gets back the CPUs that it had before it was
  // pinned. bind_again: it was pinned to this CPU until release().
  static void release(M* m);
  static void bind_again(M* m, int cpu);

 private:
  void bind_slow(M* m) const;

  const bool are_wanted_;
  // fixed while the world goes on
  bool work_ = false;
  int preparations_ = 0;
  cpu_set_t all_{};
};

}  // namespace magpie::sched
