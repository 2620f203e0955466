#include "row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace demo {
namespace {

constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr std::array<std::string_view, 8> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kAsciiHeights = "_.-=+*%#";

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// Every character that we use is one cell wide.
int cells(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string_view first_cells(std::string_view text, int count) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (begins_character(text[at]) && count-- == 0) break;
  }
  return text.substr(0, at);
}

const char* escape_of(Ink ink) {
  switch (ink) {
    case Ink::plain:
      return "";
    case Ink::dim:
      return "\x1b[2m";
    case Ink::bold:
      return "\x1b[1m";
    case Ink::green:
      return "\x1b[32m";
    case Ink::yellow:
      return "\x1b[33m";
    case Ink::blue:
      return "\x1b[34m";
    case Ink::cyan:
      return "\x1b[36m";
    case Ink::magenta:
      return "\x1b[35m";
  }
  return "";
}

}  // namespace

Row& Row::add(std::string_view text, Ink ink) {
  spans_.push_back(Span{std::string(text), ink});
  width_ += cells(text);
  return *this;
}

Row& Row::right(std::string_view text, int width, Ink ink) {
  skip_to(width_ + std::max(0, width - cells(text)));
  return add(text, ink);
}

Row& Row::skip_to(int column) {
  if (column > width_) add(std::string(static_cast<std::size_t>(column - width_), ' '));
  return *this;
}

std::string Row::text(const Paper& paper) const {
  std::string out;
  int left = paper.columns;
  for (const Span& span : spans_) {
    if (left == 0) break;
    std::string_view fits = first_cells(span.text, left);
    left -= cells(fits);
    bool coloured = paper.colours && span.ink != Ink::plain;
    if (coloured) out += escape_of(span.ink);
    out += fits;
    if (coloured) out += "\x1b[0m";
  }
  return out;
}

void add_bar(Row& row, const Paper& paper, double share, int width, Ink ink) {
  share = std::clamp(share, 0.0, 1.0);
  int eighths = static_cast<int>(std::lround(share * width * 8));
  if (share > 0 && eighths == 0) eighths = 1;
  int full = paper.blocks ? eighths / 8 : (eighths + 7) / 8;
  std::string filled;
  for (int i = 0; i < full; ++i) filled += paper.blocks ? "█" : "#";
  if (paper.blocks) filled += kEighths[static_cast<std::size_t>(eighths % 8)];
  std::string empty;
  for (int i = cells(filled); i < width; ++i) empty += paper.blocks ? "·" : ".";
  row.add(filled, ink).add(empty, Ink::dim);
}

void add_sparkline(Row& row, const Paper& paper, const std::vector<double>& values, int width,
                   Ink ink) {
  auto count = std::min(values.size(), static_cast<std::size_t>(std::max(0, width)));
  double most = 0;
  for (auto at = values.end() - static_cast<std::ptrdiff_t>(count); at != values.end(); ++at) {
    most = std::max(most, *at);
  }
  row.skip_to(row.width() + width - static_cast<int>(count));
  std::string line;
  for (auto at = values.end() - static_cast<std::ptrdiff_t>(count); at != values.end(); ++at) {
    auto height = most == 0 ? 0 : static_cast<std::size_t>(std::lround(*at / most * 7));
    if (paper.blocks) {
      line += kHeights[height];
    } else {
      line += kAsciiHeights[height];
    }
  }
  row.add(line, ink);
}

std::string short_number(double value) {
  constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  int decimals = unit == 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f%s", decimals, value, kUnits[unit]);
  return text;
}

}  // namespace demo
