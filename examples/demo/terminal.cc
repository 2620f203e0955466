#include "terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace demo {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";         // second page, no cursor
constexpr std::string_view kLeave = "\x1b[0m\x1b[?25h\x1b[?1049l";  // and back

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool locale_is_utf8() {
  std::string locale = variable("LC_ALL");
  if (locale.empty()) locale = variable("LC_CTYPE");
  if (locale.empty()) locale = variable("LANG");
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

void leave_and_die(int signal_number) {
  [[maybe_unused]] ssize_t written = write(STDOUT_FILENO, kLeave.data(), kLeave.size());
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

}  // namespace

Terminal::Terminal() : blocks_(locale_is_utf8()) {
  std::string term = variable("TERM");
  screen_ = isatty(STDOUT_FILENO) == 1 && !term.empty() && term != "dumb";
  colours_ = screen_ && variable("NO_COLOR").empty();
  signal(SIGPIPE, SIG_IGN);  // write() says it too
}

Paper Terminal::paper() const {
  Paper paper{.columns = 80, .rows = 24, .colours = colours_, .blocks = blocks_};
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 && size.ws_row != 0) {
    paper.columns = size.ws_col;
    paper.rows = size.ws_row;
  }
  return paper;
}

void Terminal::redraw(const std::vector<Row>& rows) {
  Paper now = paper();
  std::string frame;
  if (!entered_) {
    entered_ = true;
    for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, leave_and_die);
    frame += kEnter;
  }
  frame += "\x1b[H";
  for (std::size_t i = 0; i < rows.size() && i < static_cast<std::size_t>(now.rows); ++i) {
    if (i != 0) frame += "\r\n";
    frame += rows[i].text(now);
    if (rows[i].width() < now.columns) frame += "\x1b[K";  // a full row must keep its last cell
  }
  frame += "\x1b[J";
  write_all(frame);  // at once: no flicker
}

void Terminal::leave_screen() {
  if (!entered_) return;
  entered_ = false;
  write_all(kLeave);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
}

void Terminal::print_line(const Row& row) {
  Paper endless = paper();
  endless.columns = row.width();
  write_all(row.text(endless) + "\n");
}

void Terminal::write_all(std::string_view text) {
  while (!text.empty() && !reader_is_gone_ && error_ == 0) {
    ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE || errno == EBADF || errno == EIO) {
      reader_is_gone_ = true;
    } else if (errno != EINTR && errno != EAGAIN) {
      error_ = errno;
    }
  }
}

}  // namespace demo
