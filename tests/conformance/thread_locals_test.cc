// thread_locals_test.cc: thread_locals and errno stay with the thread, and a goroutine may change
// threads.
#include <cerrno>
#include <mutex>
#include <set>

#include "support/rt_test.h"

namespace magpie {
namespace {

thread_local int visits = 0;

// Not inlined, and not merged: the compiler must not keep the address of a thread_local across a
// switch.
void forget_addresses() { asm volatile("" ::: "memory"); }
[[gnu::noinline]] int* my_visits() {
  forget_addresses();
  return &visits;
}
[[gnu::noinline]] void set_errno(int value) {
  forget_addresses();
  errno = value;
}
[[gnu::noinline]] int get_errno() {
  forget_addresses();
  return errno;
}

RT_TEST(ThreadLocals, BelongToTheThreadThatAGoroutineRunsOnNow) {
  std::mutex lock;
  std::set<int*> addresses;
  WaitGroup all;
  for (int i = 0; i < 50; ++i) {
    all.go([&] {
      for (int turn = 0; turn < 10; ++turn) {
        {
          std::lock_guard hold(lock);  // held without blocking in the runtime
          addresses.insert(my_visits());
        }
        yield();
      }
    });
  }
  all.wait();
  EXPECT_LE(addresses.size(), static_cast<std::size_t>(num_threads()));
}

TEST(ThreadLocals, AtOneProcTheThreadKeepsThemSoGoroutinesShareThemAndErrno) {
  run(Options{.procs = 1, .max_threads = 1}, [] {
    *my_visits() = 41;
    set_errno(0);
    WaitGroup all;
    all.go([] {
      ++*my_visits();
      set_errno(EDOM);
    });
    all.wait();
    EXPECT_EQ(*my_visits(), 42);
    EXPECT_EQ(get_errno(), EDOM);  // so errno says nothing after a call that may block
  });
}

}  // namespace
}  // namespace magpie
