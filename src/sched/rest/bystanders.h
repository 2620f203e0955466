// bystanders.h: plain threads that cannot wake a goroutine: some have promised it, others end.
//
// The detection of deadlocks (deadlock.h) counts the threads of the process. A *bystander* is a
// plain thread that promised to wake no goroutine (magpie::Bystander): it is counted apart. A
// thread that ends is still one of the process's when it tells so, as the last thing that it does.
// So its number is noted, and an M looks for a deadlock, and now and then again until the kernel
// does not know the thread any more.
//
// Numbers  A number may become another thread's at once. That does no harm: only the process's
//          count of threads says that a thread is gone, and the note just keeps an M looking.
#pragma once

#include <cstdint>

namespace magpie::sched {

// How many there are, and whether the calling thread is one. Its visits do not count (outsider.cc):
// they are no reason to doubt a deadlock.
int count_bystanders();
bool is_bystander();

// The calling plain thread ends; it is inside the runtime, and runs no code of the user's any more
// that it knows of.
void note_ending_thread();

// Whether threads that ended are still there.
bool some_are_ending();

// To count threads takes some 20 us, and an M that goes to sleep beside plain threads would do so
// each time. So it notes that there are others, and none counts again for 10 ms, unless a thread
// ends or promises meanwhile: `change` is what changes_of_threads() said before the count. (The
// silent end of a thread that never came in is not noticed anyway.)
std::uint32_t changes_of_threads();
void note_others(std::uint32_t change);
bool others_were_seen();

// An M that found a deadlock, if only the ending threads were gone, calls the first, and sleeps no
// longer than until the time that the second says. kNever: nobody has to look again. `turns` is
// what all_turns() says: as long as that stands still, each look comes later than the one before.
void look_for_deadlock_again(std::uint64_t turns);
std::int64_t next_look_for_deadlock_ns();
void forget_next_look_for_deadlock();

// While it lives the calling thread is one of the runtime's, and no bystander.
class PromisePause {
 public:
  PromisePause();
  ~PromisePause();
  PromisePause(const PromisePause&) = delete;
  PromisePause& operator=(const PromisePause&) = delete;
};

// In the child of a fork(): the other threads are gone.
void forget_bystanders();

}  // namespace magpie::sched
