// terminal.h: standard output, as a screen that is redrawn in place or as plain lines.
//
// A screen if stdout is a terminal that can move its cursor. It is drawn on the terminal's second
// page, which goes away at the end, also after ctrl-C, so that the shell looks as before. NO_COLOR
// switches colours off. A reader that goes away (`| head -1`) is noticed, and is no error.
#pragma once

#include <string_view>
#include <vector>

#include "row.h"

namespace demo {

class Terminal {
 public:
  Terminal();
  ~Terminal() { leave_screen(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool is_screen() const { return screen_; }
  // What can be shown now: the user may have changed the window.
  Paper paper() const;

  // Replaces what the screen shows.
  void redraw(const std::vector<Row>& rows);
  // Back to plain lines.
  void leave_screen();

  void print_line(const Row& row);

  bool reader_is_gone() const { return reader_is_gone_; }
  int error() const { return error_; }  // errno of a failed write; 0: none

 private:
  void write_all(std::string_view text);

  bool screen_;
  bool entered_ = false;
  bool colours_;
  bool blocks_;
  bool reader_is_gone_ = false;
  int error_ = 0;
};

}  // namespace demo
