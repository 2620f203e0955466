// trace.h: records what the scheduler does, event by event, for `magpie trace`.
//
// Two ways. To a file, from start() to stop(): everything. Or with a flight recorder, which keeps
// the last events in memory and writes them when you ask: it is cheap enough to leave on.
//
//   MAGPIE_TRACE=file           traces a program from run() to its end, without a change to it
//   MAGPIE_TRACE=flight:file    the flight recorder is on; a crash writes the file, and so does
//                               SIGUSR2, unless the program handles it
//
// docs/trace-format.md describes the file.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <magpie/detail/api.h>

namespace magpie::trace {

struct Options {
  // The flight recorder: events stay in memory, the oldest are overwritten. `path` of start() is
  // for snapshots by signal or crash, and may be empty.
  bool flight = false;
  // Memory for events. To a file: what a slow disk may be behind before events are lost.
  std::size_t bytes = std::size_t{16} << 20;
  // Flight recorder only. A signal that writes a snapshot to `path`; 0: none.
  int signal = 0;
  // Flight recorder only. Writes a snapshot to `path` when the process dies by SIGSEGV, SIGBUS,
  // SIGFPE, SIGILL or SIGABRT.
  bool on_crash = true;
};

// Begins to record. Stops all goroutines for a moment; before run(), recording begins with it.
// Blocks. Throws std::logic_error if a trace is recorded already, std::runtime_error if the file or
// memory is not to be had.
MAGPIE_API void start(const std::string& path, const Options& options = {});

// Ends the trace, and writes what is left. Blocks. Returns false if no trace was recorded. Throws
// std::runtime_error if the file could not be written: then events were lost, and the file counts
// them.
MAGPIE_API bool stop();

// Writes what the flight recorder holds to a file that can be read like any other trace, while
// everything goes on. Blocks. Throws std::logic_error without a flight recorder, std::runtime_error
// if the file cannot be written.
MAGPIE_API void snapshot(const std::string& path);

// A part of a goroutine's work, from here to the end of the block. Regions nest. Costs next to
// nothing while nothing is recorded. Strings here are cut off after 1024 bytes.
class MAGPIE_API Region {
 public:
  explicit Region(std::string_view name);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  std::string_view name_;  // of the caller: it must live as long as the Region
};

// A piece of work that several goroutines may share, such as a request, and the one it is part of.
class MAGPIE_API Task {
 public:
  explicit Task(std::string_view name) : Task(name, 0) {}
  Task(std::string_view name, const Task& parent) : Task(name, parent.id_) {}
  ~Task();
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  std::uint64_t id() const { return id_; }

 private:
  Task(std::string_view name, std::uint64_t parent);

  std::uint64_t id_;
};

// A line of text at this time, of this goroutine.
MAGPIE_API void log(std::string_view category, std::string_view text);

}  // namespace magpie::trace
