// A dump needs no memory of the heap: without any it names no functions, and the program goes on.
// expect: ^goroutine [0-9]+ \(parked\) \[Semaphore acquire\]
// expect: ^the program goes on$
// exit: 0
#include <magpie/dump.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {
std::atomic<bool> is_empty{false};
}

void* operator new(std::size_t bytes) {
  void* memory = is_empty ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

int main() {
  magpie::Semaphore semaphore(0);
  magpie::run([&] {
    magpie::go(magpie::GoOptions{.name = "parked"}, [&] { semaphore.acquire(); });
    auto is_parked = [] {
      for (const magpie::GoroutineInfo& info : magpie::dump_goroutines().groups) {
        if (info.name == "parked" && info.state == "waiting" && info.has_stack) return true;
      }
      return false;
    };
    while (!is_parked()) magpie::yield();
    // Stacks that were seen before are known. This one is new.
    is_empty = true;
    magpie::dump(STDERR_FILENO);
    is_empty = false;
  });
  std::puts("the program goes on");
}
