// json.h: writes JSON. The caller begins and ends objects and arrays; commas come by themselves.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace magpie::view {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  // The name of the next value of an object.
  JsonWriter& key(std::string_view name);

  // Bytes that are not UTF-8 become U+FFFD.
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);  // what is not finite becomes null
  JsonWriter& value(std::integral auto number) {
    if constexpr (std::same_as<decltype(number), bool>)
      return raw(number ? "true" : "false");
    else
      return raw(std::to_string(number));
  }
  JsonWriter& null() { return raw("null"); }
  // As a string in hexadecimal: JavaScript's numbers have no room for an address.
  JsonWriter& address(std::uint64_t value);

  template <class T>
  JsonWriter& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  std::string take() { return std::exchange(text_, {}); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void append_quoted(std::string_view text);
  void separate();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace magpie::view
