#include "view/counters.h"

namespace magpie::view {

std::span<const Counter> counters() {
  static constexpr Counter kCounters[] = {
      {"ticks", &ProcStats::ticks, "Goroutines run in a turn of their own."},
      {"switches", &ProcStats::switches, "Goroutines run, also in the turn of their waker."},
      {"goroutines_started", &ProcStats::goroutines_started, "Goroutines started by goroutines."},
      {"goroutines_ended", &ProcStats::goroutines_ended, "Goroutines that have ended."},
      {"steals_tried", &ProcStats::steals_tried, "Looks at the queue of another P."},
      {"steals_succeeded", &ProcStats::steals_succeeded, "Such looks that took goroutines."},
      {"steals_near", &ProcStats::steals_near, "Steals from a P under the same cache."},
      {"steals_far", &ProcStats::steals_far, "Steals from a P of another NUMA node."},
      {"goroutines_stolen", &ProcStats::goroutines_stolen, "Goroutines moved by steals."},
      {"runnext_stolen", &ProcStats::runnext_stolen, "Stolen goroutines from a runnext slot."},
      {"overflows", &ProcStats::overflows, "Full rings of which half went to the global queue."},
      {"goroutines_spilled", &ProcStats::goroutines_spilled,
       "Goroutines moved from full rings to the global queue."},
      {"global_batches", &ProcStats::global_batches, "Batches taken from the global queue."},
      {"looks", &ProcStats::looks, "Looks of a P at what is not its own."},
      {"parks", &ProcStats::parks, "Threads that went to sleep for want of work."},
      {"wakes", &ProcStats::wakes, "Threads woken or made by goroutines."},
      {"searches", &ProcStats::searches, "Searches of all queues for work."},
      {"joined_in_place", &ProcStats::joined_in_place, "Goroutines run in place by join()."},
      {"timers_fired", &ProcStats::timers_fired, "Timers that fired."},
      {"polls", &ProcStats::polls, "Questions to the kernel for network events."},
      {"polled", &ProcStats::polled, "Goroutines that network events made ready."},
      {"handoffs", &ProcStats::handoffs,
       "Ps taken from goroutines that blocked or ran for too long."},
      {"preemptions", &ProcStats::preemptions, "Hand-offs because a goroutine ran for too long."},
  };
  return kCounters;
}

}  // namespace magpie::view
