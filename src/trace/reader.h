// reader.h: reads a trace file, from any bytes. It holds a piece of each stream, not the file.
//
// All streams come merged by time, and what the events say of a goroutine never contradicts itself:
// an event that could not happen yet (g runs, but nobody has readied it) waits for the event that
// explains it, if that one is near. The clocks of two CPUs may be a hair apart. If the explanation
// never comes (events were lost), the reader believes the event, and counts a repair.
//
// After open() and after seek(), `proc_begin` and `state` events come first: which Ps are held, and
// which goroutines live in which state. They come from the file, or from what happens next: a
// goroutine whose first event says that it is readied was waiting before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <magpie/detail/api.h>

#include "trace/event.h"

namespace magpie::trace {

// A file that was mapped for execution: pc - start + offset is the place in the file.
struct Module {
  std::uint64_t start = 0, end = 0, offset = 0;
  std::string path;
  std::string build_id;  // hexadecimal; empty: it has none
};

using Totals = std::vector<std::pair<std::string, std::uint64_t>>;

struct Info {
  std::string program;
  std::int64_t pid = 0;
  std::int64_t wall_ns = 0;     // the wall clock when the trace began
  std::uint32_t procs = 0;      // when the trace began
  std::int64_t length_ns = 0;   // the time of the last block that tells a time
  double ticks_per_second = 0;  //
  Totals totals;  // by how much the sums of stats() grew: from the first generation to the last end
  bool is_whole = false;  // the trace was ended properly, and no bytes were skipped
};

struct GenerationRef {
  std::uint32_t number = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t event_bytes = 0;
};

class MAGPIE_API Reader {
 public:
  [[nodiscard]] static std::optional<Reader> open(const std::string& path, std::string& error);
  [[nodiscard]] static std::optional<Reader> from_bytes(std::string bytes, std::string& error);

  // Another reader of the same bytes, from the beginning. It numbers strings on its own.
  [[nodiscard]] Reader twin() const;

  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  // False: there are no more events.
  [[nodiscard]] bool next(Event& event);

  // The string with this number. Lives as long as the Reader.
  std::string_view string(std::uint64_t id) const;
  const std::vector<Module>& modules() const;
  const Info& info() const;
  // False: bytes were skipped or are missing, or the file has become shorter since it was opened.
  bool is_whole() const;
  // Events that the writer had no room for. Of the whole file.
  std::uint64_t lost() const;
  // Events so far that contradicted what the reader knew.
  std::uint64_t repairs() const;

  const std::vector<GenerationRef>& generations() const;
  // Goes on with the first event of this generation, and knows nothing of those before it. The
  // generations behind it follow.
  void seek(const GenerationRef& generation);

 private:
  struct Parts;
  explicit Reader(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace magpie::trace
