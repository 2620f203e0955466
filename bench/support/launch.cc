// launch: runs a program and writes what it used to a file, as `key=value` lines.
//
// Usage: launch FILE PROGRAM [ARGUMENT...]
//
// bench/run could ask the kernel itself, but a child begins with the peak memory of the process
// that it was forked from, which for Python is more than most of our programs need. This one has
// next to none.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FILE PROGRAM [ARGUMENT...]\n", argv[0]);
    return 2;
  }
  pid_t child = fork();
  if (child < 0) {
    std::perror("fork");
    return 1;
  }
  if (child == 0) {
    execv(argv[2], argv + 2);
    std::perror(argv[2]);
    _exit(127);
  }
  int status = 0;
  rusage used{};
  if (wait4(child, &status, 0, &used) != child) {
    std::perror("wait4");
    return 1;
  }
  std::FILE* out = std::fopen(argv[1], "w");
  if (out == nullptr) {
    std::perror(argv[1]);
    return 1;
  }
  std::fprintf(out, "rss_bytes=%ld\nuser_seconds=%.6f\nsystem_seconds=%.6f\n",
               used.ru_maxrss * 1024, seconds(used.ru_utime), seconds(used.ru_stime));
  std::fprintf(out, "voluntary_switches=%ld\ninvoluntary_switches=%ld\n", used.ru_nvcsw,
               used.ru_nivcsw);
  std::fclose(out);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
