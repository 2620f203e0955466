// trace_api.h: a trace, in the JSON that the page asks for.
//
//   info          length, Ps, events, lost ones
//   tile          ?level&index: what the Ps did in 512 cells of 2^level ns each, the depths of
//                 queues, and arrows
//   goroutines    ?text&sort&offset&limit: rows of the list
//   goroutine     ?id: its states
//   summary       everything that is about the whole trace
//   waits         what goroutines wait for when the trace ends
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/trace_view.h"

namespace magpie::view {

inline constexpr int kCellsPerTile = 512;  // as in web/timeline.js
inline constexpr int kTopLevel = 50;       // 2^50 ns are 13 days

// What stands behind the ? of a request. Empty or 0: was not given.
struct TraceQuestion {
  std::string text, sort;
  std::int64_t level = 0, index = 0, offset = 0, limit = 0;
  std::uint64_t id = 0;
};

// Many goroutines call answer() at once, inside blocking(): it may read the file.
class TraceApi {
 public:
  // Throws std::runtime_error for a file that is no trace.
  explicit TraceApi(const std::string& path);
  ~TraceApi();

  // Nullopt: there is no such topic. Summary and waits wait until all of the file was read.
  std::optional<std::string> answer(std::string_view topic, const TraceQuestion& question) const;

  std::string program() const;
  std::int64_t pid() const;

 private:
  std::string info() const;
  std::string tile(std::int64_t level, std::int64_t index) const;
  std::string goroutines(const TraceQuestion& question) const;
  std::string goroutine(std::uint64_t id) const;

  const std::unique_ptr<analysis::TraceView> trace_;
};

}  // namespace magpie::view
