// event.h: the events of an execution trace, as a reader gets them.
//
// A stream is what one P wrote (stream number = index of the P), or the outside stream, which all
// threads without a P share: plain threads, sysmon, Ms whose P was taken. The file format, which
// these tables define together with format.h, is described in docs/trace-format.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace magpie::trace {

// The numbers are part of the file format. New kinds go to the end.
enum class Kind : std::uint8_t {
  none = 0,
  proc_begin,    // thread id, P: a thread begins to hold this P
  proc_end,      // the thread gives this P up
  create,        // g, body, place, caller: g is started. body: its code; caller: who called go()
  run,           // g, place: g begins, or goes on, to run on this P
  end,           // the running goroutine is over
  yield,         // place: running -> runnable
  park,          // reason, object: running -> waiting
  ready,         // g, place, source: waiting -> runnable
  block_begin,   // g: enters blocking()
  block_end,     // g: leaves it
  taken,         // p, g, why: P p is taken from g, which goes on without a P
  stop,          // g, place: g has no P, and waits for its turn
  back,          // g: g, which had no P, holds this P and runs
  join_begin,    // child: the running goroutine runs the child in place, and waits meanwhile
  join_end,      // child, parent: the child is over, and the parent goes on
  steal,         // victim, how many, of them from runnext
  steal_miss,    // victim, how many looks at it in vain, one after the other
  spill,         // how many: half of the ring goes to the global queue
  global_take,   // how many
  thread_park,   // the P's thread goes to sleep for want of work
  thread_wake,   // the P whose thread is woken or made; in its own stream: it is handed over
  search_begin,  //
  search_end,    // found (0/1)
  poll,          // how many goroutines became ready
  timers,        // how many fired
  procs,         // n: set_procs
  stop_world,    //
  start_world,   //
  region_begin,  // name: nests, per goroutine
  region_end,    // name
  task_begin,    // task, parent, name
  task_end,      // task
  log,           // category, text
  queue,         // length of this P's ring, of the global queue
  lost,          // how many events found no room before this one
  state,         // g, GState, reason, object, body: of g when reading begins
  name,          // g, name: its name in GoOptions
  let_out,       // g: it waited for its turn, and goes on without a P (the valve)
  // Since the event before it: periods of the CPU quota, periods in which it was used up, time in
  // ns for which the process was stopped; the quota in thousandths of a CPU.
  quota,
  last = quota
};

inline constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::last) + 1;

// Where a goroutine was put, or came from.
enum class Place : std::uint8_t {
  runnext,
  ring,
  global,
  inbox,
  urgent,
  stopped,
  fresh,  // nowhere: it runs at once
  stolen
};

// Who made a goroutine ready.
enum class Source : std::uint8_t { goroutine, timer, network, plain_thread };

// Why a P was taken.
enum class Why : std::uint8_t { blocking, blocks_undeclared, used_its_slice, world_stops };

// As sched::GState: state events carry these numbers.
enum class GoState : std::uint8_t { free, fresh, runnable, running, waiting, ended };

inline constexpr std::int32_t kOutside = -1;
inline constexpr std::size_t kMostArgs = 5;

struct Event {
  std::int64_t time_ns = 0;  // since the trace began
  Kind kind = Kind::none;
  std::int32_t proc = kOutside;
  std::uint64_t goroutine = 0;  // that runs on this P; 0: none
  std::array<std::uint64_t, kMostArgs> args{};
};

// How the arguments of a kind are stored, one letter each:
//   n  a number    g  the number of a goroutine    s  a string, in the event itself
//   p  a program counter, stored as its distance from Begin::anchor
//   o  an address, stored as its distance from the last one in the same block
struct KindInfo {
  std::string_view name;
  std::string_view args;
};

inline constexpr std::array<KindInfo, kKinds> kKindInfo = {{
    {"none", ""},        {"proc_begin", "nn"},  {"proc_end", ""},     {"create", "gpnp"},
    {"run", "gn"},       {"end", ""},           {"yield", "n"},       {"park", "no"},
    {"ready", "gnn"},    {"block_begin", "g"},  {"block_end", "g"},   {"taken", "ngn"},
    {"stop", "gn"},      {"back", "g"},         {"join_begin", "g"},  {"join_end", "gg"},
    {"steal", "nnn"},    {"steal_miss", "nn"},  {"spill", "n"},       {"global_take", "n"},
    {"thread_park", ""}, {"thread_wake", "n"},  {"search_begin", ""}, {"search_end", "n"},
    {"poll", "n"},       {"timers", "n"},       {"procs", "n"},       {"stop_world", ""},
    {"start_world", ""}, {"region_begin", "s"}, {"region_end", "s"},  {"task_begin", "nns"},
    {"task_end", "n"},   {"log", "ss"},         {"queue", "nn"},      {"lost", "n"},
    {"state", "gnnop"},  {"name", "gs"},        {"let_out", "g"},     {"quota", "nnnn"},
}};

constexpr std::string_view name_of(Kind kind) {
  auto index = static_cast<std::size_t>(kind);
  return index < kKinds ? kKindInfo[index].name : "unknown";
}

}  // namespace magpie::trace
