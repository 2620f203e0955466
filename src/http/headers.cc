#include <magpie/http/headers.h>

#include <algorithm>

#include "http/text.h"

namespace magpie::http {

const std::string& Headers::get(std::string_view name) const noexcept {
  static const std::string none;
  for (const Field& field : fields_) {
    if (same_name(field.first, name)) return field.second;
  }
  return none;
}

bool Headers::has(std::string_view name) const noexcept {
  return std::any_of(fields_.begin(), fields_.end(),
                     [name](const Field& field) { return same_name(field.first, name); });
}

void Headers::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [name](const Field& field) { return same_name(field.first, name); });
}

}  // namespace magpie::http
