// MAGPIE_DEBUG that is not understood is named together with what is.
// expect: MAGPIE_DEBUG: "schedtrace=soon" is not understood; it knows schedtrace=MILLISECONDS
// exit: SIGABRT
#include <magpie/magpie.h>

#include <cstdlib>

int main() {
  setenv("MAGPIE_DEBUG", "preempt=off,schedtrace=soon", 1);
  magpie::run([] {});
}
