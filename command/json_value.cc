#include "command/json_value.h"

#include <charconv>

#include "command/commands.h"

namespace magpie::command {

namespace {

constexpr int kDeepest = 100;

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  JsonValue whole() {
    JsonValue value = any(0);
    skip_space();
    if (at_ != end_) fail();
    return value;
  }

 private:
  [[noreturn]] static void fail() { throw Failure("the answer is not JSON"); }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ == end_ ? '\0' : *at_;
  }
  void expect(char c) {
    if (peek() != c) fail();
    ++at_;
  }
  bool take_word(std::string_view word) {
    if (static_cast<std::size_t>(end_ - at_) < word.size() ||
        std::string_view(at_, word.size()) != word)
      return false;
    at_ += word.size();
    return true;
  }

  JsonValue any(int depth) {
    if (depth > kDeepest) fail();
    JsonValue value;
    switch (peek()) {
      case '{':
        members(value, depth);
        break;
      case '[':
        items(value, depth);
        break;
      case '"':
        value.text = string();
        break;
      default:
        if (take_word("true")) {
          value.number = 1;
        } else if (!take_word("false") && !take_word("null")) {
          auto [next, error] = std::from_chars(at_, end_, value.number);
          if (error != std::errc()) fail();
          at_ = next;
        }
    }
    return value;
  }

  void members(JsonValue& value, int depth) {
    expect('{');
    if (peek() == '}') {
      ++at_;
      return;
    }
    for (;;) {
      if (peek() != '"') fail();
      std::string name = string();
      expect(':');
      value.members[std::move(name)] = any(depth + 1);
      if (peek() != ',') break;
      ++at_;
    }
    expect('}');
  }

  void items(JsonValue& value, int depth) {
    expect('[');
    if (peek() == ']') {
      ++at_;
      return;
    }
    for (;;) {
      value.items.push_back(any(depth + 1));
      if (peek() != ',') break;
      ++at_;
    }
    expect(']');
  }

  std::string string() {
    std::string text;
    for (++at_; at_ != end_ && *at_ != '"'; ++at_) {
      if (*at_ == '\\' && ++at_ == end_) fail();
      text += *at_;
    }
    if (at_ == end_) fail();
    ++at_;
    return text;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

JsonValue parse_json(std::string_view text) { return JsonReader(text).whole(); }

}  // namespace magpie::command
