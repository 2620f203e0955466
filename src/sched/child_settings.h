// child_settings.h: what the kernel keeps for a thread, and a child process inherits.
//
// An M may be pinned to the CPU of its P (Options::pin), and may have asked for punctual timers
// (be_punctual). A program that a goroutine starts must have neither: it would run on one CPU, for
// as long as it lives. Slices and scheduling policy need no care: only threads that never run a
// goroutine ask for slices, and the runtime changes no policy.
#pragma once

namespace magpie::sched {

struct M;

// While this lives the calling thread has the settings that it had before it became an M. For a
// call that makes a child and returns when the child has its program. A plain thread may use it.
class ChildSettings {
 public:
  ChildSettings();
  ~ChildSettings();
  ChildSettings(const ChildSettings&) = delete;
  ChildSettings& operator=(const ChildSettings&) = delete;

 private:
  M* m_;
  int cpu_, slack_ns_;
};

// In the child of a fork(): its only thread was this M's.
void restore_settings_of(M* m);

}  // namespace magpie::sched
