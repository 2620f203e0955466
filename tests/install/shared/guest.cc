// A plugin that works in a runtime which another has started.
#include <magpie/magpie.h>

#include <exception>
#include <thread>

#include "plugins.h"

extern "C" [[gnu::visibility("default")]] void guest_entry(Seen& seen) {
  seen.goroutine = magpie::goroutine_id();
  seen.procs = magpie::procs();

  magpie::WaitGroup all;
  for (int i = 0; i < 10; ++i) {
    all.go([i, numbers = seen.numbers] {
      magpie::yield();
      numbers.send(i);
    });
  }
  all.wait();
  // A plain thread, whose copies of the library's thread_locals are made when it starts.
  std::thread([numbers = seen.numbers] { numbers.close(); }).join();
}
