// dump.h: what every goroutine does, and where. For programs that are stuck, or slow.
//
// Nothing is recorded for it beforehand. A parked goroutine's stack stands still and is unwound
// when somebody asks; the thread of a running goroutine is sent a signal (Options::preempt_signal)
// and unwinds itself in the handler. No goroutine stops for longer than that. It works while
// goroutines are in endless loops.
//
// SIGQUIT (Ctrl-\) prints the same text to stderr: Options::on_quit. A deadlock, a fatal signal and
// an uncaught exception print the stacks that belong to them.
//
// Functions, files and lines come from libdw (elfutils) if the library was built with its headers
// and libdw.so.1 is there at run time; else only functions that are exported are named, and all
// others appear as module+offset.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <magpie/detail/api.h>

namespace magpie {

// A place in the program's code.
struct CodePlace {
  std::uintptr_t pc = 0;
  std::string function;       // empty: unknown
  std::string file;           // empty: unknown
  int line = 0;               // 0: unknown
  std::string module;         // the file that is mapped there; empty: none
  std::uintptr_t offset = 0;  // of pc in the module
};

// Goroutines that are alike: same name, state, reason and stack. Unfolded: one goroutine.
struct GoroutineInfo {
  std::uint64_t id = 0;            // of the first
  std::vector<std::uint64_t> ids;  // of the first few
  std::size_t count = 1;
  std::string name;    // empty: none
  std::string state;   // "fresh", "runnable", "running", "waiting"
  std::string reason;  // why it waits, or what it runs in: "chan receive", "blocking call"
  // What it waits for: an address, and in words: "Chan 0x...", "descriptor 7", "goroutine 12". Of
  // goroutines that wait for different things: of the first.
  std::uintptr_t object = 0;
  std::string object_text;
  // It has waited for at least this long: since the first dump, or look of the watchdog
  // (Options::report_blocked_after), that saw it wait. -1: nobody has looked before. The longest of
  // the group.
  std::chrono::nanoseconds waited_for{-1};
  std::uint64_t waits_for = 0;   // the goroutine that holds the Mutex, or that it joins; 0: unknown
  std::uint64_t started_by = 0;  // 0: a plain thread, or a timer
  CodePlace body;                // the function that it runs
  int thread = 0;                // the OS thread that it is on now; 0: none
  std::vector<CodePlace> frames;  // innermost first
  // False: it has not run yet, shares the stack of the goroutine that it runs in place, has just
  // begun to run or changed too quickly, or its thread did not answer.
  bool has_stack = true;
};

struct GoroutineDump {
  std::size_t goroutines = 0;
  std::vector<GoroutineInfo> groups;  // the largest first
  // Goroutines that wait for each other: each waits for a Mutex that the next holds, or joins it;
  // the last waits for the first.
  std::vector<std::vector<std::uint64_t>> cycles;
  // Goroutines that are in no cycle, but wait for goroutines of one, or at a nil channel: nobody
  // will wake them.
  std::size_t stuck_behind = 0;
};

enum class Fold { yes, no };

// A snapshot, with functions and lines looked up. Callable by goroutines and plain threads. Empty
// when no runtime runs.
MAGPIE_API GoroutineDump dump_goroutines(Fold fold = Fold::yes);

// The same as text. To a descriptor: nothing is thrown, and what cannot be written is dropped.
MAGPIE_API void dump(std::ostream& out);
MAGPIE_API void dump(int descriptor);

// A goroutine that kept its thread for longer than MAGPIE_DEBUG=slow=... or Options::report_slow
// allows.
struct SlowGoroutine {
  std::uint64_t id = 0;
  std::string name;
  // True: its thread sleeps in the kernel, in a call that was not declared by blocking(). False: it
  // computes.
  bool blocks = false;
  std::chrono::nanoseconds for_how_long{0};
  std::vector<CodePlace> frames;  // at that moment
};

// What to do with such a goroutine instead of a line on stderr. Called on a thread of the runtime's
// own, one at a time. An empty function restores the default.
MAGPIE_API void on_slow(std::function<void(const SlowGoroutine&)> handler);

// Where the runtime's own messages go instead of stderr. Called by any thread, also in signal
// handlers and inside the runtime: it must not allocate, lock or call the runtime. Null: stderr.
using LogHook = void (*)(std::string_view line);
MAGPIE_API LogHook set_log_hook(LogHook hook);

}  // namespace magpie
