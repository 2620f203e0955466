// three_tasks.cc: three tasks that print, on two Ps.
//
// Two run at a time, the third waits for its turn. Look at the order of the lines: it differs from
// run to run, but each task's own lines are in order, and all three finish.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>

int main() {
  constexpr int kTasks = 3, kSteps = 4;
  std::atomic<bool> in_order = true;
  std::atomic<int> lines = 0;

  magpie::run(magpie::Options{.procs = 2}, [&] {
    magpie::WaitGroup all;
    for (char name = 'A'; name < 'A' + kTasks; ++name) {
      all.go([&, name] {
        for (int step = 0, before = -1; step < kSteps; before = step++) {
          std::printf("task %c, step %d\n", name, step);
          if (before != step - 1) in_order = false;
          ++lines;
          magpie::yield();  // others may run now
        }
      });
    }
    all.wait();
  });

  return lines == kTasks * kSteps && in_order ? 0 : 1;
}
