// An exception that nobody catches ends the program where it was thrown: the frames are still there
// when the program's own terminate handler runs, and in the core file.
// expect: ^magpie: goroutine [0-9]+ ended by an uncaught exception: far down$
// expect: ^the thrower's frame is alive: 4711$
// exit: SIGABRT
#include <magpie/magpie.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace {

struct Frame {
  ~Frame() { value = -1; }
  volatile int value = 4711;
};
Frame* volatile frame_of_thrower = nullptr;

[[gnu::noinline]] void throw_far_down(int depth) {
  Frame frame;
  frame_of_thrower = &frame;
  if (depth == 0) throw std::runtime_error("far down");
  throw_far_down(depth - 1);
  frame_of_thrower = nullptr;
}

}  // namespace

int main() {
  std::set_terminate([] {
    std::printf("the thrower's frame is alive: %d\n", frame_of_thrower->value);
    std::fflush(stdout);
    std::abort();
  });
  magpie::run([] {
    magpie::WaitGroup never;
    never.add(1);
    magpie::go([] {
      magpie::yield();
      throw_far_down(5);
    });
    never.wait();
  });
}
