// process.h: child processes.
//
//   Process compiler = Process::spawn({"cc", "-c", "a.c"}, {.error = Stdio::pipe()});
//   std::string complaints = BufferedReader(compiler.error()).read_all(1 << 20);
//   if (!compiler.wait().success()) ...
//
// A goroutine that waits for a child costs its stack, not a thread. No SIGCHLD is needed, so a
// program may do with that what it likes, but for ignoring it: the kernel then throws the exit
// status away.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/types.h>

#include <magpie/context.h>
#include <magpie/detail/deadline.h>
#include <magpie/net/pipe.h>

namespace magpie {

namespace detail {
class Child;  // src/net/child.h
}

// How a process ended.
class ExitStatus {
 public:
  ExitStatus() = default;
  static ExitStatus of_code(int code) { return ExitStatus(code, 0); }
  static ExitStatus of_signal(int signal) { return ExitStatus(-1, signal); }

  bool success() const { return code_ == 0; }
  int code() const { return code_; }      // what it gave to exit(); -1: a signal ended it
  int signal() const { return signal_; }  // 0: none
  std::string to_string() const;          // "exit code 1", "signal 9 (Killed)"

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;

 private:
  ExitStatus(int code, int signal) : code_(code), signal_(signal) {}
  int code_ = -1;
  int signal_ = 0;
};

// What a child has as its standard input, output or error.
class Stdio {
 public:
  static Stdio inherit() { return Stdio(Kind::inherit, -1); }  // what this process has
  static Stdio null() { return Stdio(Kind::null, -1); }        // nothing to read; writes vanish
  static Stdio pipe() { return Stdio(Kind::pipe, -1); }        // a stream of the Process
  // A descriptor of the caller's, who keeps it and may close it once spawn() has returned: a file,
  // a socket.
  static Stdio descriptor(int fd) { return Stdio(Kind::descriptor, fd); }
  static Stdio to_output() {
    return Stdio(Kind::to_output, -1);
  }  // of error: where the output goes

  enum class Kind { inherit, null, pipe, descriptor, to_output };
  Kind kind() const { return kind_; }
  int fd() const { return fd_; }

 private:
  Stdio(Kind kind, int fd) : kind_(kind), fd_(fd) {}
  Kind kind_;
  int fd_;
};

struct ProcessOptions {
  Stdio input = Stdio::inherit();
  Stdio output = Stdio::inherit();
  Stdio error = Stdio::inherit();
  // "NAME=value" each. None: this process's.
  std::optional<std::vector<std::string>> environment = {};
  // Empty: this process's.
  std::string directory = {};
};

// A child. Moves. The destructor does not leave it behind: a child that still runs is killed
// (SIGKILL) and waited for, so wait() first if it is to finish, or detach() it. If run() drops the
// goroutine that has it, no destructor runs and the child goes on; when it has ended the next spawn()
// reaps it. In the child of a fork() a Process of the parent is left alone: its destructor kills
// nobody, and wait() and kill() fail with errc::no_child_process. The functions may be called by several goroutines, and by plain
// threads, at the same time; a stream as streams may. For one that was moved from they throw
// std::logic_error.
class Process {
 public:
  // Starts a program. command[0] is a path, or a name that is looked for in this process's PATH;
  // the rest are its arguments, which no shell looks at. It begins with no signals blocked and the
  // default for SIGPIPE, and with the three descriptors only, as far as others are closed on exec:
  // all of Magpie's are. Blocks briefly, without holding a processor. Throws std::system_error,
  // which names the program (or the directory), and std::invalid_argument for an empty command or a
  // text with a '\0' in it; with an error code that is errc::invalid_argument.
  static Process spawn(std::vector<std::string> command, ProcessOptions options = {});
  static Process spawn(std::vector<std::string> command, ProcessOptions options,
                       std::error_code& error);

  Process() noexcept;  // none
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();

  pid_t id() const;

  // This side of what was asked for as Stdio::pipe(), else a stream on which everything fails.
  // Close the input to let the child read its end. A child that writes more than a pipe holds, 64
  // KiB, waits until somebody reads: read before wait().
  net::PipeStream& input() { return input_; }
  net::PipeStream& output() { return output_; }
  net::PipeStream& error() { return error_; }

  // Blocks until it has ended. May be asked again. Throws std::system_error: errc::no_child_process
  // if somebody else has taken the status, by waitpid(-1) or by ignoring SIGCHLD.
  ExitStatus wait();
  ExitStatus wait(std::error_code& error);
  // The same, until the context is over: throws std::system_error with its err(). The child goes
  // on.
  ExitStatus wait(const Context& context);
  ExitStatus wait(const Context& context, std::error_code& error);
  // The same, for a time. Nullopt: it has not ended.
  template <class Rep, class Period>
  std::optional<ExitStatus> wait_for(std::chrono::duration<Rep, Period> time) {
    return wait_until_ns(detail::deadline_after(time));
  }
  template <class Clock, class Duration>
  std::optional<ExitStatus> wait_until(std::chrono::time_point<Clock, Duration> time) {
    return detail::wait_until(
        time, [this](detail::DeadlineNs deadline) { return wait_until_ns(deadline); });
  }
  template <class Rep, class Period>
  std::optional<ExitStatus> wait_for(std::chrono::duration<Rep, Period> time,
                                     std::error_code& error) {
    return wait_until_ns(detail::deadline_after(time), error);
  }
  template <class Clock, class Duration>
  std::optional<ExitStatus> wait_until(std::chrono::time_point<Clock, Duration> time,
                                       std::error_code& error) {
    std::optional<ExitStatus> ended;
    detail::wait_until(time, [&](detail::DeadlineNs deadline) {
      ended = wait_until_ns(deadline, error);
      return ended || error;
    });
    return ended;
  }
  std::optional<ExitStatus> try_wait() { return wait_until_ns(0); }
  std::optional<ExitStatus> try_wait(std::error_code& error) { return wait_until_ns(0, error); }

  // Blocks until it has ended, and sees to it once the context is over: SIGTERM, and after the
  // grace SIGKILL; no grace: SIGKILL at once. Throws as wait().
  template <class Rep, class Period>
  ExitStatus wait_or_kill(const Context& context, std::chrono::duration<Rep, Period> grace) {
    return wait_or_kill_ns(context, detail::whole_ns(grace));
  }
  ExitStatus wait_or_kill(const Context& context) { return wait_or_kill_ns(context, 0); }
  ExitStatus wait_or_kill(const Context& context, std::error_code& error) {
    return wait_or_kill_ns(context, 0, error);
  }
  template <class Rep, class Period>
  ExitStatus wait_or_kill(const Context& context, std::chrono::duration<Rep, Period> grace,
                          std::error_code& error) {
    return wait_or_kill_ns(context, detail::whole_ns(grace), error);
  }

  // Sends a signal, to the child itself and never to another process that got its number. Nothing
  // if it has ended. Does not block. Throws std::system_error.
  void kill(int signal = SIGKILL);
  void kill(int signal, std::error_code& error);

  // Lets it run on by itself; this object has none then. It is reaped when it ends, if the run() in
  // which it was spawned goes on; else by the next spawn() after that, and is a zombie until then.
  void detach();

  struct Output {
    ExitStatus status;
    std::string output, error;
  };
  // Writes the input and closes it, reads output and error to their ends, all at the same time, and
  // waits for the child. What is no pipe is left out. A child that does not read its input is no
  // error. Throws as read, write and wait() do, and std::errc::message_size for more than `limit`
  // bytes of either; the child is killed then, and all three streams are closed. Inside run() only.
  Output communicate(std::string_view input = {}, std::size_t limit = 64 << 20);
  Output communicate(std::string_view input, std::size_t limit, std::error_code& error);
  // The same, until the context is over: kills the child and throws std::system_error with its
  // err().
  Output communicate(std::string_view input, std::size_t limit, const Context& context);
  Output communicate(std::string_view input, std::size_t limit, const Context& context,
                     std::error_code& error);

 private:
  std::optional<ExitStatus> wait_until_ns(detail::DeadlineNs deadline);
  std::optional<ExitStatus> wait_until_ns(detail::DeadlineNs deadline, std::error_code& error);
  ExitStatus wait_or_kill_ns(const Context& context, std::int64_t grace_ns);
  ExitStatus wait_or_kill_ns(const Context& context, std::int64_t grace_ns, std::error_code& error);
  detail::Child& child(const char* what) const;
  void end() noexcept;

  std::shared_ptr<detail::Child> child_;  // null: none
  net::PipeStream input_, output_, error_;
};

}  // namespace magpie
