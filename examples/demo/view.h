// view.h: a plain thread that looks at the scheduler a few times a second and shows what it sees.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "load.h"
#include "picture.h"
#include "terminal.h"

namespace demo {

class View {
 public:
  View(Terminal& terminal, Progress& progress);
  ~View() { stop(); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  // Returns when the thread has ended.
  void stop();

 private:
  void watch();
  void look();
  void show_line();

  Terminal& terminal_;
  Progress& progress_;
  Picture picture_;
  int announced_ = -1;  // phase whose title was printed
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace demo
