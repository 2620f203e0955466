// dump_json.h: the goroutines of the running program, in the JSON of the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <magpie/dump.h>

namespace magpie::view {

// Groups of goroutines with equal stacks in which the text occurs: in a number, name, state,
// reason, function or file. An empty text occurs in all.
std::string goroutines_json(const GoroutineDump& dump, std::string_view text);

// Tells which code starts goroutines that wait and become more.
class GrowthWatch {
 public:
  struct Seen {
    std::size_t first = 0, now = 0;  // goroutines that waited at the first look, and at the last
    std::int64_t longest_ns = 0;
    bool is_suspect() const { return now >= first + kGrowth && now * 4 >= first * 5; }
  };
  void look(const GoroutineDump& dump);
  const std::map<std::string, Seen>& seen() const { return seen_; }

 private:
  static constexpr std::size_t kGrowth = 10;
  std::map<std::string, Seen> seen_;  // by the body of the goroutines
};

// Who waits for what, and in a circle.
std::string live_waits_json(const GoroutineDump& dump, const GrowthWatch& growth);

}  // namespace magpie::view
