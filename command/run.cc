// run.cc: `magpie run -- PROGRAM`: the program with MAGPIE_TRACE set, then what it did.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "command/commands.h"

extern char** environ;

namespace magpie::command {

namespace {

volatile std::sig_atomic_t program = 0;   // its process, once it runs
volatile std::sig_atomic_t asked_by = 0;  // a signal that came before it ran

void pass_on(int signal) {
  if (program != 0)
    kill(static_cast<pid_t>(program), signal);
  else
    asked_by = signal;
}

// Signals are for the program: the trace is shown afterwards. A terminal sends SIGINT and SIGQUIT
// to both; SIGTERM and SIGHUP come to us alone and mean the program.
class SignalsPassedOn {
 public:
  SignalsPassedOn() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &interrupt_before_);
    sigaction(SIGQUIT, &ignore, &quit_before_);
    struct sigaction pass {};
    pass.sa_handler = pass_on;
    pass.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &pass, &terminate_before_);
    sigaction(SIGHUP, nullptr, &hang_up_before_);
    if (hang_up_before_.sa_handler != SIG_IGN) sigaction(SIGHUP, &pass, nullptr);  // not by nohup
  }
  ~SignalsPassedOn() {
    sigaction(SIGHUP, &hang_up_before_, nullptr);
    sigaction(SIGTERM, &terminate_before_, nullptr);
    sigaction(SIGINT, &interrupt_before_, nullptr);
    sigaction(SIGQUIT, &quit_before_, nullptr);
  }
  SignalsPassedOn(const SignalsPassedOn&) = delete;
  SignalsPassedOn& operator=(const SignalsPassedOn&) = delete;

 private:
  struct sigaction interrupt_before_ {
  }, quit_before_{}, terminate_before_{}, hang_up_before_{};
};

// Removes an old trace, which must not be taken for that of this run, and fails before the program
// runs if a new one cannot be written. What is no file is not ours to remove: root could remove
// /dev/null.
void make_room(const std::string& path) {
  struct stat status {};
  const bool is_there = lstat(path.c_str(), &status) == 0;
  if (is_there && !S_ISREG(status.st_mode)) throw Failure(path + ": is not a file");
  if (is_there && unlink(path.c_str()) != 0) throw Failure(path + ": " + std::strerror(errno));
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) throw Failure(path + ": " + std::strerror(errno));
  close(file);
  unlink(path.c_str());
}

pid_t start(const RunOptions& options) {
  // The program may change its directory before it opens the file.
  setenv("MAGPIE_TRACE", std::filesystem::absolute(options.output).c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : options.program)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw Failure(options.program[0] + ": " + std::strerror(error));
  program = child;
  if (asked_by != 0) kill(child, static_cast<int>(asked_by));
  return child;
}

// As a shell says it: the exit code, or 128 and the signal.
int wait_for(pid_t child) {
  siginfo_t ended;
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0)
    if (errno != EINTR)
      throw Failure(std::string("waiting for the program: ") + std::strerror(errno));
  program = 0;  // before its number can be another's
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  std::fprintf(stderr, "magpie: the program was ended by signal %d (%s)\n", WTERMSIG(status),
               strsignal(WTERMSIG(status)));
  return 128 + WTERMSIG(status);
}

}  // namespace

int run(const RunOptions& options) {
  make_room(options.output);
  int code = 0;
  {
    SignalsPassedOn passed_on;
    code = wait_for(start(options));
  }
  if (access(options.output.c_str(), R_OK) != 0)
    throw Failure(options.program[0] +
                  " wrote no trace: is it linked with Magpie, and did it start the runtime?");
  if (options.quiet) return code;
  if (options.view)
    trace_view({.file = options.output});
  else
    trace_summary({.file = options.output});
  return code;
}

}  // namespace magpie::command
