// json_text.h: strings as JSON has them.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace magpie::analysis {

inline std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      result += code;
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace magpie::analysis
