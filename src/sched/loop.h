// loop.h: an M runs one goroutine after the other. There is no scheduler stack.
//
// The loop runs on a pooled stack, and calls a fresh goroutine there. If that ends without blocking, the loop goes on
// below it; nothing was switched and no stack was bound. If it blocks, it keeps the stack, loop frame and all, and
// the M leaves:
//     to the next goroutine, if that one has a stack: one switch;
//     else to a new loop, on the M's spare stack.
// When the goroutine is later resumed, on whatever M, and returns, the loop frame under it goes on as the loop of
// that M. So a loop's locals must never name the M across a call. A loop that finds a goroutine with a stack
// of its own switches to it and is over: its stack becomes the M's spare.
//
// Publishing  A goroutine that leaves is only told to the world after its registers are saved: the side that
//             comes up runs the leaver's commit step first thing (settle). The leaver is told of through
//             M::left, which both sides share: they run on the same thread.
// Invariant   While a goroutine runs, its M holds a spare stack.
#pragma once

#include "sched/m.h"

namespace magpie::sched {

struct Runtime;

// Leaves the running goroutine g, which must not be published before `commit` says so, for `next` (null: for
// whatever the loop finds). Returns when g is resumed, on the M that it returns.
M* leave_goroutine(M* m, G* g, G* next, Commit commit, void* argument);

// The same for a goroutine that yields: it goes to the end of the ring.
void leave_yielding(M* m, G* g, G* next);

// Destroys the goroutine-local values of g, as g: a destructor may block, or use other such values. Outside the runtime.
void destroy_locals(G* g);

// Runs the loop on the calling thread until the runtime ends. The M holds a P.
void run_loop(M* m);

// On a stack whose frames an exception has unwound, as the goroutine that threw it: ends the goroutine, and goes on with a loop.
[[noreturn]] void go_on_after_uncaught();

// Runs a claimed, joinable goroutine's body on the stack of the calling goroutine, which is m's, as that goroutine.
void run_in_place(M* m, G* child);

// Bytes left on the stack of the calling goroutine, m's.
[[gnu::always_inline]] inline std::size_t stack_left(const M* m) {
  auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return static_cast<std::size_t>(here - m->current->stack->low);
}

}  // namespace magpie::sched
