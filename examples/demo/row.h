// row.h: one row of text that knows its width and its colours, so that it can be cut to fit any
// terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace demo {

enum class Ink { plain, dim, bold, green, yellow, blue, cyan, magenta };

// What the terminal can show.
struct Paper {
  int columns = 80;
  int rows = 24;
  bool colours = false;
  bool blocks = false;  // UTF-8 block characters; else #, = and dots
};

class Row {
 public:
  Row& add(std::string_view text, Ink ink = Ink::plain);
  Row& right(std::string_view text, int width, Ink ink = Ink::plain);  // padded on the left
  Row& skip_to(int column);
  int width() const { return width_; }

  // Cut to the paper's columns, with escape codes if it has colours.
  std::string text(const Paper& paper) const;

 private:
  struct Span {
    std::string text;
    Ink ink;
  };
  std::vector<Span> spans_;
  int width_ = 0;
};

// A bar of `width` cells, filled by `share` of 1.
void add_bar(Row& row, const Paper& paper, double share, int width, Ink ink);

// One cell per value, the last `width` of them; the largest is the highest.
void add_sparkline(Row& row, const Paper& paper, const std::vector<double>& values, int width,
                   Ink ink);

// 999, 12.3k, 4.56M: never wider than five.
std::string short_number(double value);

}  // namespace demo
