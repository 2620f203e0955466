// switching.h: an M goes from one stack to another.
//
//   from                          to                                        by
//   the thread's own stack        a loop on a pooled stack                  run_loop
//   a goroutine that blocks       the next goroutine, if it has a stack;    switch_away
//     or yields                   else a new loop on the M's spare stack
//   a loop that found a           that goroutine; the loop is over and      end_loop_for
//     goroutine with a stack      its stack becomes the M's spare
//   a loop                        a loop on another stack                   move_loop_to
//   a loop                        the thread's own stack                    end_loop_for_thread
//   a goroutine that never        the thread's own stack                    abandon_goroutine
//     goes on: run() ends
//
// Publishing  A goroutine that switches away is published only after its registers are saved. The
//             side that arrives runs the goroutine's commit step first (settle). Both sides run on
//             the same thread, so M::left passes the step between them without an atomic.
// Invariant   While a goroutine runs, its M holds a spare stack. So blocking never allocates.
// Sanitizers  The M tells them of every switch: note_departure, note_destination, note_arrival.
#pragma once

#include "base/probe.h"
#include "sched/core/m.h"

namespace magpie::sched {

// Switches from the running goroutine g to `next` (null: to what the loop finds). Nothing may
// publish g before `commit` does. Returns when g is resumed; the result is the M that resumed it.
M* switch_away(M* m, G* g, G* next, Commit commit, void* argument);

// The same for a goroutine that yields: it goes to the end of the ring.
void switch_away_yielding(M* m, G* g, G* next);

// Ends the loop and gives up its stack. The M continues with g, which has a stack.
[[noreturn]] void end_loop_for(M* m, G* g);

// Ends the loop. The M continues with a new loop on `other`.
[[noreturn]] void move_loop_to(M* m, stack::Stack* other);

// Ends the loop. The M's thread continues where it called run_loop().
[[noreturn]] void end_loop_for_thread(M* m);

// Runs the loop on the calling thread until the runtime ends. The M holds a P.
void run_loop(M* m);

// Ends the calling thread's part in the middle of a goroutine. The runtime ends, and the goroutine
// never continues.
[[noreturn]] void abandon_goroutine(M* m);

[[gnu::always_inline]] inline void start_running(M* m, G* g) {
  m->current = g;
  g->state.store(GState::running, base::relaxed);
  MAGPIE_PROBE(run, g->id, m->p);
}

}  // namespace magpie::sched
