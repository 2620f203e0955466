// recorder.h: where the blocks of events go: to a file as they fill, or round in a ring until
// somebody asks for a snapshot.
//
//   file     full blocks -> the recorder's thread -> the file. Every 16 MiB a new generation begins
//   flight   full blocks wait, oldest first, to be reused. snapshot() copies them, and writes the
//            copy. A crash writes them where they are
//
// The runtime (sched) calls begin() and end() while no goroutine runs, and tells through Host what
// goroutines live. A file that cannot be written loses events, which are counted and reported.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/page_array.h"
#include "trace/meta.h"

namespace magpie::trace {

// A list of `state` and `proc_begin` events, in the file's format. It grows without the allocator:
// it is filled inside the runtime.
class StateList {
 public:
  void add_goroutine(std::uint64_t g, std::uint8_t state, std::uint8_t reason,
                     std::uint64_t object_or_proc, std::uint64_t body);
  void add_proc(std::uint64_t thread, std::uint64_t index);
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data()), used_}; }

 private:
  std::uint8_t* room();
  void done(std::uint8_t* at) { used_ = static_cast<std::size_t>(at - bytes_.data()); }

  base::PageArray<std::uint8_t> bytes_;
  std::size_t used_ = 0;
  std::uint64_t last_object_ = 0;
};

// Sums of stats(), in the order of Host::total_names.
inline constexpr std::size_t kMostTotals = 32;
using Sums = std::array<std::uint64_t, kMostTotals>;

// What the recorder asks the runtime, from any thread but not inside.
struct Host {
  std::span<const char* const> total_names;
  std::uint32_t (*procs)();
  void (*totals)(Sums& out);
  void (*states)(StateList& out);
};

struct Plan {
  bool flight = false;
  std::string path;  // flight: of the snapshots by signal or crash; may be empty
  std::size_t bytes = 0;
  int signal = 0;  // flight: a snapshot when it comes; 0: none
  bool on_crash = false;
};

// What is true when recording begins.
struct Start {
  bool is_new_run = false;  // no goroutine lives yet
  std::uint32_t procs = 0;
  int proc = -1;  // the P of the caller; -1: it has none
  std::uint64_t goroutine = 0;
  Sums totals{};
  StateList states;
};

class Recorder {
 public:
  // Empty: everything is ready, and switch_on() may follow. Else what went wrong.
  static std::string prepare(const Plan& plan, const Host& host);
  static bool is_prepared();

  // Events are recorded from now on, or no longer. No thread may hold a P but the caller. Nothing
  // is allocated, and nothing blocks. False: nothing has changed.
  static bool switch_on(const Start& start);
  static bool switch_off(const Sums& totals);

  // After each of them that returned true, once the world goes on: what it means for the file.
  static void write_beginning(const Start& start);
  static void write_end();

  // by_caller: finish() must follow, and nothing is recorded any more. too_early: a run() that is
  // beginning or ending still records; the caller asks again. by_others: another thread has ended
  // the trace.
  enum class Finishing { by_caller, by_others, too_early };
  static Finishing begin_to_finish();
  // Ends the trace. Empty, or what went wrong.
  static std::string finish();

  // Writes what the flight recorder holds. Empty, or what went wrong.
  static std::string snapshot(const std::string& path);

  // In the child of a fork(): what the parent records is none of its business.
  static void forget();
  // This process is such a child. The file that MAGPIE_TRACE names is the parent's.
  static bool is_of_parent();
};

}  // namespace magpie::trace
