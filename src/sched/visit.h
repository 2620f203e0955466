// visit.h: a plain thread uses the runtime.
//
// run() does not tear the runtime down while a plain thread visits it. So a visit is brief, and
// never blocks. How visitors and the end of run() agree: [outsider], run/outsider_gate.h.
#pragma once

namespace magpie::sched {

// False: no runtime runs. Else end_visit() must follow.
[[nodiscard]] bool begin_visit();
void end_visit();

class Visit {
 public:
  Visit();
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  explicit operator bool() const { return alive_; }  // false: no runtime runs

 private:
  bool alive_;
};

// The process has a thread of the library's own that belongs to no runtime. It wakes only
// goroutines that wait for it: is_awaited() tells whether there are any, or the thread is about to
// wake one. The detection of deadlocks (rest/deadlock.h) asks when all goroutines wait. Null: there
// is no such thread.
void set_library_thread(bool (*is_awaited)());

// The calling thread is that thread: its visits do not count (deadlock.h). It calls the second
// whenever it has done what it is there for. It may have woken nobody, and an M that saw it busy
// looks for a deadlock again.
void visit_unnoted();
void note_library_thread_has_acted();

}  // namespace magpie::sched
