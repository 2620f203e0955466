// A frame of megabytes does not jump over the guard into another goroutine's stack.
// expect: ^magpie: goroutine [0-9]+ \(greedy\) overflowed its stack of 262144 bytes
// exit: SIGABRT
#include <alloca.h>
#include <magpie/magpie.h>

#include <cstddef>
#include <cstring>

namespace {

[[gnu::noinline]] std::size_t use_much(std::size_t bytes) {
  auto* memory = static_cast<char*>(alloca(bytes));
  std::memset(memory, 1, 100);  // its far end
  asm volatile("" : : "r"(memory) : "memory");
  return static_cast<std::size_t>(memory[50]);
}

}  // namespace

int main() {
  magpie::run([] {
    // Stacks of others, for the frame to land in.
    magpie::WaitGroup never;
    never.add(1);
    for (int i = 0; i < 100; ++i) magpie::go([&] { never.wait(); });
    magpie::yield();
    magpie::spawn(magpie::GoOptions{.name = "greedy"}, [] { use_much(4 << 20); }).join();
  });
}
