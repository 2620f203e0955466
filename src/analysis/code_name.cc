#include "analysis/code_name.h"

#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <utility>

namespace magpie::analysis {

namespace {

// The last template argument of the first name in `name` that has any; empty: none.
std::string last_argument(const std::string& name) {
  const std::size_t open = name.find('<');
  if (open == std::string::npos) return {};
  int depth = 0;
  std::size_t begin = open + 1;
  for (std::size_t i = open; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == ',' && depth == 1) begin = i + 1;
    if ((c == '>' || c == ')' || c == '}') && --depth == 0) {
      while (begin < i && name[begin] == ' ') ++begin;
      return name.substr(begin, i - begin);
    }
  }
  return {};
}

}  // namespace

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

std::string user_code_name(std::string name) {
  while (name.compare(0, 8, "magpie::") == 0) {
    std::string inner = last_argument(name);
    if (inner.empty()) break;
    name = std::move(inner);
  }
  const std::string call = "::operator()() const";
  for (std::size_t at; (at = name.find(call)) != std::string::npos;) name.erase(at, call.size());
  return name;
}

}  // namespace magpie::analysis
