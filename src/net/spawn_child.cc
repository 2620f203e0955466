// spawn_child.cc: posix_spawn(), which is safe in a program with threads: the child runs nothing of
// it between birth and exec. All descriptors are closed on exec from the moment they are made, so
// that no child of another goroutine gets them.
#include "net/spawn_child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/blocking.h>

#include "net/child.h"
#include "net/errors.h"
#include "sched/child_settings.h"

namespace magpie::net {
namespace {

class OwnFd {
 public:
  explicit OwnFd(int fd = -1) : fd_(fd) {}
  OwnFd(OwnFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnFd& operator=(OwnFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Above the three, so that putting one in its place does not overwrite another.
[[gnu::noinline]] OwnFd out_of_the_way(int fd) {
  OwnFd moved(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (moved.get() < 0) fail(code_of_errno(), "spawn: a descriptor for the child");
  return moved;
}

[[gnu::noinline]] OwnFd open_or_throw(const char* path, int flags, const std::string& what) {
  OwnFd fd(open(path, flags | O_CLOEXEC));
  if (fd.get() >= 0) return fd;
  int error = errno;
  throw std::system_error(error, std::generic_category(), "magpie: spawn: " + what);
}

struct Ends {
  OwnFd reader, writer;
};
[[gnu::noinline]] Ends make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(code_of_errno(), "spawn: a pipe for the child");
  return {OwnFd(ends[0]), OwnFd(ends[1])};
}

void check(int error) {
  if (error == ENOMEM) throw std::bad_alloc();
  if (error != 0) throw std::system_error(error, std::generic_category(), "magpie: spawn");
}

// The system would take what is before a zero byte for the text.
void check_text(const std::string& text) {
  if (text.find('\0') != text.npos)
    throw std::invalid_argument("magpie: spawn: a text with '\\0' in it: " +
                                std::string(text.c_str()));
}

// What the child does before it becomes the program.
class Plan {
 public:
  Plan() {
    check(posix_spawn_file_actions_init(&actions_));
    if (int error = posix_spawnattr_init(&attributes_); error != 0) {
      posix_spawn_file_actions_destroy(&actions_);
      check(error);
    }
    sigset_t none, sigpipe;
    sigemptyset(&none);
    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &sigpipe);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Plan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Returns this side of a pipe, or an empty stream.
  PipeStream set(int place, const Stdio& wanted) {
    switch (wanted.kind()) {
      case Stdio::Kind::inherit:
        break;
      case Stdio::Kind::null:
        put(place, open_or_throw("/dev/null", O_RDWR, "/dev/null"));
        break;
      case Stdio::Kind::descriptor:
        put(place, out_of_the_way(wanted.fd()));
        break;
      case Stdio::Kind::to_output:
        if (place != STDERR_FILENO)
          throw std::invalid_argument("magpie: spawn: Stdio::to_output() is for the error only");
        check(posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, place));
        break;
      case Stdio::Kind::pipe: {
        Ends ends = make_pipe();
        const bool reads = place == STDIN_FILENO;
        put(place, std::move(reads ? ends.reader : ends.writer));
        OwnFd& ours = reads ? ends.writer : ends.reader;
        PipeStream stream = PipeStream::adopt(ours.get());
        ours.release();
        return stream;
      }
    }
    return PipeStream();
  }

  void set_directory(const std::string& path) {
    check_text(path);
    directory_ = open_or_throw(path.c_str(), O_PATH | O_DIRECTORY, path);
    check(posix_spawn_file_actions_addfchdir_np(&actions_, directory_.get()));
  }

  // An error number.
  int carry_out(pid_t& id, char* const* command, char* const* environment) {
    return posix_spawnp(&id, command[0], &actions_, &attributes_, command, environment);
  }

 private:
  void put(int place, OwnFd fd) {
    if (fd.get() < 3) fd = out_of_the_way(fd.get());
    check(posix_spawn_file_actions_adddup2(&actions_, fd.get(), place));
    kept_[place] = std::move(fd);
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  OwnFd kept_[3];
  OwnFd directory_;
};

// As the system wants them: ended by a null. Good as long as the texts.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) {
    check_text(text);
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Spawned spawn_child(const std::vector<std::string>& command, const ProcessOptions& options) {
  if (command.empty() || command[0].empty())
    throw std::invalid_argument("magpie: spawn: no program is named");
  std::vector<char*> arguments = pointers_to(command), variables;
  if (options.environment) variables = pointers_to(*options.environment);

  Plan plan;
  Spawned spawned{};
  spawned.input = plan.set(STDIN_FILENO, options.input);
  spawned.output = plan.set(STDOUT_FILENO, options.output);
  spawned.error = plan.set(STDERR_FILENO, options.error);
  if (!options.directory.empty()) plan.set_directory(options.directory);

  char* const* environment = options.environment ? variables.data() : environ;
  // The caller sleeps until the program has begun, or could not. If run() ends meanwhile the
  // goroutine does not come back from here: the child is on the list by then.
  int error = blocking([&] {
    pid_t id = 0;
    sched::ChildSettings settings;
    int failed = plan.carry_out(id, arguments.data(), environment);
    if (failed == 0) spawned.child = detail::Child::adopt(id);
    return failed;
  });
  if (error != 0)
    throw std::system_error(error, std::generic_category(), "magpie: spawn " + command[0]);
  return spawned;
}

}  // namespace magpie::net
