// MAGPIE_PROCS that is no number is named together with what to do.
// expect: magpie: MAGPIE_PROCS=many is no positive number; unset it or use, say, MAGPIE_PROCS=4
// exit: SIGABRT
#include <magpie/magpie.h>

#include <cstdlib>

int main() {
  setenv("MAGPIE_PROCS", "many", 1);
  magpie::run([] {});
}
