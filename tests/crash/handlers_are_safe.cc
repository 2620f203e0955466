// All that the runtime does in handlers of signals, and none of the calls that a handler must not
// make: goroutines are stopped, dumps sample threads that run and read stacks that are gone,
// SIGQUIT asks for a dump, SIGUSR2 for a snapshot, and at last the program dies of a fault, with
// its stack and its last words.
// expect: ^every handler has run$
// expect: ^magpie: goroutine [0-9]+ \(doomed\) ends the program by SIGSEGV, at address 0x10$
// expect: ^    at .
// exit: SIGSEGV
#include <magpie/dump.h>
#include <magpie/magpie.h>
#include <magpie/trace.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "sched/dump/fault_guard.h"
#include "support/handler_check.h"

namespace {

using handler_check::calls_of;

void wait_for_call_of(int signal) {
  while (handler_check::kChecks && calls_of[signal].load() == 0) magpie::yield();
}

}  // namespace

int main() {
  const int file = memfd_create("last words", MFD_CLOEXEC);
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  magpie::trace::start(path, {.flight = true, .signal = SIGUSR2});
  magpie::run(magpie::Options{.procs = 2, .time_slice = std::chrono::milliseconds(1)}, [] {
    std::atomic<bool> is_over{false};
    magpie::WaitGroup loops;
    for (int i = 0; i < 4; ++i) {
      loops.go([&] {
        while (!is_over.load(std::memory_order_relaxed)) {
        }
      });
    }
    while (magpie::stats().total.preemptions < 20) magpie::yield();
    for (int i = 0; i < 20; ++i) (void)magpie::dump_goroutines();
    is_over = true;
    loops.wait();

    const bool survived =
        magpie::sched::survives([](void*) { *reinterpret_cast<volatile int*>(0x20) = 1; }, nullptr);
    if (survived) std::puts("a fault that was expected did not happen");
    kill(getpid(), SIGQUIT);
    kill(getpid(), SIGUSR2);
    for (int signal : {SIGURG, SIGSEGV, SIGQUIT, SIGUSR2}) wait_for_call_of(signal);
    std::puts("every handler has run");
    std::fflush(stdout);
    magpie::go(magpie::GoOptions{.name = "doomed"},
               [] { *reinterpret_cast<volatile int*>(0x10) = 1; });
    magpie::sleep_for(std::chrono::hours(1));
  });
}
