// A SIGSEGV that is sent, by kill(), ends the program as any other would.
// expect: ^sent$
// exit: SIGSEGV
#include <magpie/magpie.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

int main() {
  magpie::run([] {
    std::puts("sent");
    std::fflush(stdout);
    kill(getpid(), SIGSEGV);
    for (;;) magpie::sleep_for(std::chrono::seconds(1));
  });
}
