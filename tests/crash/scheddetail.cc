// MAGPIE_DEBUG=scheddetail=1 prints a line per P, M and G as Go does.
// expect: ^SCHED [0-9]+ms: gomaxprocs=2 .*runqueue=[0-9]+ gcwaiting=(true|false) nmidlelocked=[0-9]+ stopwait=[0-9]+ sysmonwait=false
// expect: ^  P0: status=[0-4] schedtick=[0-9]+ syscalltick=[0-9]+ m=([0-9]+|nil) runqsize=[0-9]+ gfreecnt=[0-9]+ timerslen=[0-9]+
// expect: ^  M0: p=([0-9]+|nil) curg=([0-9]+|nil) mallocing=0 throwing=0 preemptoff= locks=0 dying=0 spinning=(true|false) blocked=(true|false) lockedg=([0-9]+|nil)
// expect: ^  G1: status=4\(sleep\) m=nil lockedm=nil$
// exit: 0
#include <magpie/magpie.h>

#include <cstdlib>

int main() {
  setenv("MAGPIE_DEBUG", "schedtrace=5,scheddetail=1", 1);
  magpie::run(magpie::Options{.procs = 2}, [] {
    for (int i = 0; i < 20; ++i) magpie::sleep_for(std::chrono::milliseconds(10));
  });
}
