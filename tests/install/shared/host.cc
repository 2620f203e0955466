// A plugin that starts the runtime, and calls another plugin inside it.
#include <magpie/magpie.h>

#include <cstdio>
#include <exception>

#include "plugins.h"

namespace {

bool is_served_by(GuestEntry guest) {
  magpie::Chan<int> numbers;
  magpie::JoinHandle<int> sum = magpie::spawn([numbers] {
    int total = 0;
    for (int n : numbers) total += n;
    return total;
  });
  Seen seen{numbers, 0, 0};
  const magpie::Local<int> unused;  // keys are numbered for the whole process
  guest(seen);
  if (sum.join() != 45) return false;
  if (seen.goroutine != magpie::goroutine_id() || seen.procs != magpie::procs()) return false;

  try {
    numbers.send(1);
  } catch (const magpie::ClosedChannel&) {
    return true;
  }
  return false;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int host_entry(GuestEntry guest) {
  try {
    return magpie::run([guest] { return is_served_by(guest) ? 0 : 1; });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "host: %s\n", e.what());
    return 1;
  }
}
