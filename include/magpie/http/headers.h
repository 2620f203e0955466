// headers.h: a list of header fields. Names are compared without regard to case.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <magpie/detail/api.h>

namespace magpie::http {

// A list of header fields. Names are compared without regard to case.
class MAGPIE_API Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first value of that name; empty if there is none. The reference is valid until the list
  // changes.
  const std::string& get(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept;
  // Replaces all fields of that name.
  void set(std::string_view name, std::string_view value);
  void add(std::string_view name, std::string_view value) { fields_.emplace_back(name, value); }
  void remove(std::string_view name);

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  std::size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }

 private:
  std::vector<Field> fields_;
};

}  // namespace magpie::http
