// inside.h: is the calling thread inside the runtime? There it must not wait for anything that user
// code may hold.
//
// A stopped thread may hold any lock of user code, malloc's above all. A thread that waits for such
// a lock outside the runtime loses its P, and the holder of the lock has its turn. A thread that
// waits for it inside keeps its P, and all Ps could be stuck behind it (entry.h). So inside, with a
// P, nothing allocates, frees, throws, or takes a lock that is not the runtime's own. The tests
// check that: tests/support/inside_check.cc asks here at every malloc, free and pthread_mutex_lock.
#pragma once

namespace magpie::sched {

// Whether the calling thread is inside the runtime and holds a P, in a goroutine's call or in the
// loop. Any thread may ask at any time, also in a signal handler.
[[nodiscard]] bool is_inside_with_p();

// While this lives, the calling thread may do inside what is forbidden there. `why` says why
// nothing gets stuck. Its scope must not switch to another goroutine.
class AllowedInside {
 public:
  explicit AllowedInside(const char* why);
  ~AllowedInside();
  AllowedInside(const AllowedInside&) = delete;
  AllowedInside& operator=(const AllowedInside&) = delete;

 private:
  const char* const before_;
};

}  // namespace magpie::sched
