// hello.cc: starts a few goroutines and waits for them.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>

int main() {
  std::atomic<int> greetings = 0;

  magpie::run([&] {  // goroutine 1; when it returns, run() returns
    magpie::WaitGroup all;
    for (int i = 1; i <= 5; ++i) {
      all.go([&, i] {  // a new goroutine, counted by `all` until it ends
        std::printf("hello from task %d, goroutine %lu\n", i, magpie::goroutine_id());
        ++greetings;
      });
    }
    all.wait();  // blocks this goroutine, not the thread under it
  });

  return greetings == 5 ? 0 : 1;
}
