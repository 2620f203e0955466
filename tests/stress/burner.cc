// burner.cc: makes the machine busy while tests run beside it. `burner cpu|memory|wakes SEED`,
// until its parent ends.
//
//   cpu      burns for milliseconds, rests for milliseconds: other threads lose their CPUs at any
//            place
//   memory   allocates, touches and frees much: the kernel maps, unmaps and clears pages
//   wakes    two threads wake each other without pause: the kernel's scheduler has much to do
#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <semaphore>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

std::mt19937_64 random_numbers;

std::uint64_t below(std::uint64_t limit) { return random_numbers() % limit; }

[[noreturn]] void burn_cpu() {
  for (;;) {
    auto until = steady_clock::now() + microseconds(below(30'000));
    while (steady_clock::now() < until) {
    }
    std::this_thread::sleep_for(microseconds(below(10'000)));
  }
}

[[noreturn]] void storm_memory() {
  constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  std::vector<std::unique_ptr<volatile char[]>> held(16);
  for (;;) {
    std::size_t size = below(kMostBytes) + 1;
    auto& memory = held[below(held.size())];
    memory.reset(new volatile char[size]);
    for (std::size_t at = 0; at < size; at += 4096) memory[at] = 1;
    if (below(20) == 0) std::this_thread::sleep_for(microseconds(below(5'000)));
  }
}

[[noreturn]] void storm_wakes() {
  std::binary_semaphore ping(0), pong(0);
  std::jthread other([&] {
    for (;;) {
      ping.acquire();
      pong.release();
    }
  });
  for (;;) {
    for (int i = 0; i < 1'000; ++i) {
      ping.release();
      pong.acquire();
    }
    std::this_thread::sleep_for(microseconds(below(20'000)));
  }
}

}  // namespace

int main(int count, char** arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string_view kind = count > 1 ? arguments[1] : "";
  random_numbers.seed(count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1);
  if (kind == "cpu") burn_cpu();
  if (kind == "memory") storm_memory();
  if (kind == "wakes") storm_wakes();
  std::fprintf(stderr, "usage: burner cpu|memory|wakes SEED\n");
  return 2;
}
