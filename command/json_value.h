// json_value.h: reads JSON, as much as the answers of /debug/stats need.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace magpie::command {

struct JsonValue {
  double number = 0;  // of numbers, and of true (1) and false (0)
  std::string text;
  std::vector<JsonValue> items;
  std::map<std::string, JsonValue> members;

  // A member that is not there is 0.
  double of(const std::string& name) const {
    auto found = members.find(name);
    return found == members.end() ? 0 : found->second.number;
  }
};

// Throws Failure when it is not JSON.
JsonValue parse_json(std::string_view text);

}  // namespace magpie::command
