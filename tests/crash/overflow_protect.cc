// On kernels without MADV_GUARD_INSTALL guards are PROT_NONE pages; an overflow looks the same.
// expect: ^magpie: goroutine [0-9]+ \(old kernel\) overflowed its stack of 262144 bytes
// exit: SIGABRT
#include <cstdlib>

#include "overflow.h"

int main() {
  setenv("MAGPIE_GUARDS", "protect", 1);
  magpie::run([] {
    magpie::spawn(magpie::GoOptions{.name = "old kernel"}, [] {
      magpie::yield();
      recurse_for_ever(0);
    }).join();
  });
}
