// The check of the handlers' calls sees what it bans.
// expect: a handler of a signal calls what it must not: malloc|nothing is checked
// exit: 99
#include <cstdlib>

#include "support/handler_check.h"

int main() {
  if (!handler_check::kChecks) {
    std::puts("nothing is checked");
    return 99;
  }
  struct sigaction action = {};
  action.sa_handler = [](int) {
    void* volatile memory = std::malloc(1);
    (void)memory;
  };
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
}
