// For a debugger: a goroutine in every state that it can be stopped in, and eight that wait at one
// Mutex. One P and no preemption: when main comes to stop_here(), all others stand still. Sysmon is
// held: while the debugger stops one thread after the other, it would take main's P.
// With the argument "abort" the program aborts there.
#include <magpie/magpie.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace {
magpie::Mutex gate;
magpie::Chan<int> nothing;
std::atomic<bool> over{false};
std::atomic<bool> holds_sysmon{false};
bool aborts = false;
bool has_yielded = false;
int ended = 0;

// By a signal that debuggers pass on without a word.
void hold_sysmon() {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    holds_sysmon = true;
    while (!over) usleep(1'000);
  };
  sigaction(SIGWINCH, &action, nullptr);
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "magpie-sysmon") continue;
    syscall(SYS_tgkill, getpid(), std::stoi(task.path().filename()), SIGWINCH);
    while (!holds_sysmon) usleep(1'000);
  }
}
}  // namespace

extern "C" {

[[gnu::noinline]] void stop_here() {
  if (aborts) std::abort();
  std::fflush(stdout);
}

// A local whose value differs from goroutine to goroutine.
[[gnu::noinline]] void wait_at_gate(int number) {
  volatile int ticket = 100 + number;
  gate.lock();
  gate.unlock();
  ended += ticket - number == 100 ? 1 : 0;
}

[[gnu::noinline]] void yield_until_over() {
  volatile int kept = 77;
  has_yielded = true;
  while (!over) magpie::yield();
  ended += kept == 77 ? 1 : 0;
}

[[gnu::noinline]] void wait_with_thread() {
  magpie::ThreadLock lock;
  volatile int kept = 55;
  (void)nothing.recv();
  ended += kept == 55 ? 1 : 0;
}

// The goroutine that is joined runs on this stack, and waits there.
[[gnu::noinline]] void join_one_that_waits() {
  volatile int kept = 33;
  magpie::spawn([] {
    volatile int inner = 44;
    (void)nothing.recv();
    ended += inner == 44 ? 1 : 0;
  }).join();
  ended += kept == 33 ? 1 : 0;
}
}

int main(int argc, char** argv) {
  aborts = argc > 1 && std::strcmp(argv[1], "abort") == 0;
  magpie::run(magpie::Options{.procs = 1, .preempt = false}, [] {
    while (!holds_sysmon) hold_sysmon();  // it names itself when it begins
    magpie::WaitGroup all;
    gate.lock();
    for (int i = 0; i < 8; ++i) {
      all.add(1);
      magpie::go({.name = "stuck " + std::to_string(i)}, [i, &all] {
        wait_at_gate(i);
        all.done();
      });
    }
    all.go([] { wait_with_thread(); });
    all.go([] { join_one_that_waits(); });
    while (magpie::stats().waiting < 11) magpie::yield();
    all.go([] { yield_until_over(); });
    while (!has_yielded) magpie::yield();
    all.go([] { ++ended; });  // has not begun
    volatile int mine = 11;
    stop_here();
    over = true;
    gate.unlock();
    nothing.close();
    all.wait();
    ended += mine == 11 ? 1 : 0;
  });
  std::printf("%d of them ended\n", ended);
}
