// Main has returned while a goroutine blocks its thread: run() says what it waits for, and uses no
// CPU meanwhile.
// expect: ^magpie: main has returned; run\(\) waits for a goroutine on thread [0-9]+ that runs without calling the runtime, is in blocking
// exit: 0
#include <magpie/magpie.h>

#include <chrono>
#include <ctime>
#include <thread>

int main() {
  using namespace std::chrono_literals;
  magpie::run(magpie::Options{.procs = 2}, [] {
    magpie::go([] { std::this_thread::sleep_for(4s); });
    magpie::sleep_for(10ms);
  });
  return std::clock() < CLOCKS_PER_SEC / 2 ? 0 : 1;
}
