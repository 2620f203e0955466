// When the system gives no more memory for stacks, goroutines that have one may still wait for the
// network. So the program goes on for as long as that takes.
// expect: no memory for another goroutine stack of 262144 bytes
// exit: 0
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "support/os_faults.h"

int main() {
  // An event that comes from the kernel, when the runtime has seen for long that nothing runs.
  const int event = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  const itimerspec after_3_seconds{.it_interval = {}, .it_value = {.tv_sec = 3, .tv_nsec = 0}};
  magpie::run(magpie::Options{.procs = 2}, [&] {
    magpie::support::MapFaults refuse(magpie::support::Refuse::stacks);
    timerfd_settime(event, 0, &after_3_seconds, nullptr);
    magpie::Semaphore places(0);
    magpie::WaitGroup all;
    for (int i = 0; i < 2000; ++i) all.go([&places] { places.acquire(); });
    magpie::net::wait_readable(event);
    places.release(2000);
    all.wait();
  });
  close(event);
}
