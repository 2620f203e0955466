// wake.h: starts threads for idle Ps.
#pragma once

namespace magpie::sched {

struct M;
struct P;
struct G;

// Runs one more searcher, already counted, if a P is idle. `m` is the caller's M; null: a plain thread.
// Call it through wake_searcher (queues.h).
void start_searcher(M* m);

// Runs the P on a sleeping or new thread. The caller holds it and must not touch it afterwards.
enum class Searching { no, yes };  // yes: already counted in Search
void start_thread_for(P* p, Searching searching);

// A sleeping M that was taken off the list, and knows what it was handed.
void wake(M* m);

// A goroutine of the global queue that brings its own thread, or null.
G* take_bound();

// No thread is to be had for the P, which goes back to the idle list.
void do_without_thread(P* p, Searching searching);

// An idle P cannot be used: no thread sleeps that could take it, and new ones are refused.
bool no_thread_comes();

// Puts an M, which is on the list of sleeping ones, to sleep until it is handed a P. False: the runtime ends, or its
// thread does: there were many more than are needed.
[[nodiscard]] bool sleep_until_handed_a_p(M* m);

// The P that it was handed, once it is off the list. False: the runtime ends.
[[nodiscard]] bool go_on_as_handed(M* m);

// Takes all goroutines of a P that its holder gives up out of its queues.
void move_queue_to_global(P* p);

}  // namespace magpie::sched
