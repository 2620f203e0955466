// A goroutine that returns in the child of a fork() is told what to do instead.
// expect: magpie: a goroutine returned in the child of a fork\(\); call exec or _exit there, or run\(\) again
// exit: SIGABRT
#include <magpie/magpie.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

int main() {
  magpie::run([] {
    pid_t child = fork();
    if (child == 0) return;
    int status = 0;
    magpie::blocking([&] { waitpid(child, &status, 0); });
    if (WIFSIGNALED(status)) raise(WTERMSIG(status));
    _exit(3);
  });
}
