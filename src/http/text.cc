#include "http/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace magpie::http {

namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

constexpr std::array<bool, 256> kTokenCharacters = [] {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[c] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[c] = table[c - 32] = true;
  for (char c : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

bool has_option(std::string_view list, std::string_view option) noexcept {
  while (!list.empty()) {
    std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    const std::size_t begin = std::min(one.find_first_not_of(" \t"), one.size());
    one = one.substr(begin, one.find_last_not_of(" \t") + 1 - begin);
    if (same_name(one, option)) return true;
  }
  return false;
}

bool is_field_name(std::string_view text) noexcept {
  for (char c : text) {
    if (!kTokenCharacters[static_cast<unsigned char>(c)]) return false;
  }
  return !text.empty();
}

bool is_field_value(std::string_view text) noexcept {
  for (char c : text) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) return false;
  }
  return true;
}

namespace {

// Calls take(character) for each; both may end it with false.
template <class Take>
bool decode(std::string_view text, Plus plus, Take take) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (text.size() - i < 3) return false;
      int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return false;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus == Plus::is_space) {
      c = ' ';
    }
    if (!take(c)) return false;
  }
  return true;
}

}  // namespace

bool append_decoded(std::string& to, std::string_view text, Plus plus) {
  return decode(text, plus, [&](char c) {
    to.push_back(c);
    return true;
  });
}

bool decodes_to(std::string_view text, std::string_view decoded) noexcept {
  return decode(text, Plus::is_space,
                [&](char c) {
                  if (decoded.empty() || decoded.front() != c) return false;
                  decoded.remove_prefix(1);
                  return true;
                }) &&
         decoded.empty();
}

void append_number(std::string& to, unsigned long long number) {
  char digits[20];
  char* end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  to.append(digits, end);
}

void append_date(std::string& to, long long unix_seconds) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::time_t seconds = unix_seconds;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  int size = std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                           kDays[parts.tm_wday], parts.tm_mday, kMonths[parts.tm_mon],
                           parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
  to.append(text, static_cast<std::size_t>(size));
}

}  // namespace magpie::http
