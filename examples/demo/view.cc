#include "view.h"

#include <string>

#include <magpie/stats.h>

namespace demo {
namespace {

constexpr auto kFrame = std::chrono::milliseconds(100);
constexpr auto kLine = std::chrono::milliseconds(500);

}  // namespace

View::View(Terminal& terminal, Progress& progress)
    : terminal_(terminal), progress_(progress), thread_([this] { watch(); }) {}

void View::stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void View::watch() {
  auto pause = terminal_.is_screen() ? kFrame : kLine;
  auto next = start_ + pause;
  while (!stop_) {
    // Short naps, so that stop() does not wait for a whole pause.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (std::chrono::steady_clock::now() < next) continue;
    next += pause;
    look();
    if (terminal_.reader_is_gone() || terminal_.error() != 0) progress_.cancel = true;
  }
}

void View::look() {
  std::chrono::duration<double> since = std::chrono::steady_clock::now() - start_;
  int phase = progress_.phase;
  magpie::Stats stats = magpie::stats();
  if (phase < 0 || stats.procs.empty()) return;  // before, or after, run()
  picture_.add(since.count(), phase, std::move(stats));
  if (terminal_.is_screen()) {
    terminal_.redraw(picture_.screen(terminal_.paper()));
  } else {
    show_line();
  }
}

void View::show_line() {
  if (announced_ != picture_.phase()) {
    announced_ = picture_.phase();
    Row title;
    title.add(std::to_string(announced_ + 1) + ". " +
              kPhases[static_cast<std::size_t>(announced_)]);
    terminal_.print_line(title);
  }
  terminal_.print_line(picture_.line());
}

}  // namespace demo
