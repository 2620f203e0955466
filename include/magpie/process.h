// process.h: child processes.
//
//   Process compiler = Process::spawn({"cc", "-c", "a.c"}, {.error = Stdio::pipe()});
//   std::string complaints = BufferedReader(compiler.error()).read_all(1 << 20);
//   if (!compiler.wait().success()) ...
//
// A goroutine that waits for a child costs its stack, not a thread. Magpie does not use SIGCHLD, so
// a program may handle it. It must not ignore it: the kernel would throw exit statuses away.
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
#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>
#include <magpie/net/pipe.h>

namespace magpie {

namespace detail {
class Child;  // src/net/child.h
}

// How a process ended.
class MAGPIE_API ExitStatus {
 public:
  ExitStatus() = default;
  static ExitStatus of_code(int code) { return ExitStatus(code, 0); }
  static ExitStatus of_signal(int signal) { return ExitStatus(-1, signal); }

  bool success() const { return code_ == 0; }
  int code() const { return code_; }      // what the process gave to exit(); -1: a signal ended it
  int signal() const { return signal_; }  // 0: none
  std::string to_string() const;          // "exit code 1", "signal 9 (Killed)"

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;

 private:
  ExitStatus(int code, int signal) : code_(code), signal_(signal) {}
  int code_ = -1;
  int signal_ = 0;
};

// The standard input, output or error of a child.
class Stdio {
 public:
  static Stdio inherit() { return Stdio(Kind::inherit, -1); }  // what this process has
  static Stdio null() { return Stdio(Kind::null, -1); }        // nothing to read; writes vanish
  static Stdio pipe() { return Stdio(Kind::pipe, -1); }        // a stream of the Process
  // A descriptor of the caller: a file, a socket. The caller keeps it and may close it after
  // spawn().
  static Stdio descriptor(int fd) { return Stdio(Kind::descriptor, fd); }
  // For the error: the same as the output.
  static Stdio to_output() { return Stdio(Kind::to_output, -1); }

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
  // "NAME=value" each. Nullopt: the environment of this process.
  std::optional<std::vector<std::string>> environment = {};
  // Empty: the directory of this process.
  std::string directory = {};
};

// A child process. Movable. The destructor does not leave the child behind: it kills a running
// child (SIGKILL) and waits for it. To let the child finish, call wait() or detach() first. If
// run() drops the goroutine that owns a Process, no destructor runs and the child goes on; when the
// child has ended, the next spawn() reaps it. In the child of a fork() the parent's Process is
// inert: its destructor kills nobody, and wait() and kill() fail with errc::no_child_process.
// Several goroutines and plain threads may call the functions at the same time; for its streams,
// see stream.h. The functions of an object that was moved from throw std::logic_error.
class MAGPIE_API Process {
 public:
  // Starts a program. command[0] is a path, or a name that is looked up in this process's PATH; the
  // rest are its arguments, which no shell sees. The child starts with no blocked signals, with the
  // default action for SIGPIPE, and with three descriptors only, as far as others are closed on
  // exec: all of Magpie's are. Blocks briefly, without holding a processor. Throws
  // std::system_error, which names the program (or the directory), and std::invalid_argument for an
  // empty command or a text that contains '\0'; with an error code that is errc::invalid_argument.
  static Process spawn(std::vector<std::string> command, ProcessOptions options = {});
  static Process spawn(std::vector<std::string> command, ProcessOptions options,
                       std::error_code& error);

  Process() noexcept;  // none
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();

  pid_t id() const;

  // The parent's end of what was asked for as Stdio::pipe(), else a stream on which everything
  // fails. Close the input to let the child see its end. A child that writes more than a pipe
  // holds, 64 KiB, waits until somebody reads: read before wait().
  net::PipeStream& input() { return input_; }
  net::PipeStream& output() { return output_; }
  net::PipeStream& error() { return error_; }

  // Blocks until the child has ended. May be called again. Throws std::system_error:
  // errc::no_child_process if somebody else has taken the status, by waitpid(-1) or by ignoring
  // SIGCHLD.
  ExitStatus wait();
  ExitStatus wait(std::error_code& error);
  // As wait(), until the context is over: then it throws std::system_error with err(). The child
  // goes on.
  ExitStatus wait(const Context& context);
  ExitStatus wait(const Context& context, std::error_code& error);
  // As wait(), until time is up. Nullopt: the child has not ended. Any clock will do.
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

  // Blocks until the child has ended. Once the context is over, sends SIGTERM and after the grace
  // SIGKILL; without a grace, SIGKILL at once. Throws as wait().
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

  // Sends a signal to the child, never to another process that got its number. Does nothing if the
  // child has ended. Never blocks. Throws std::system_error.
  void kill(int signal = SIGKILL);
  void kill(int signal, std::error_code& error);

  // Lets the child run on alone; this object is empty then. The child is reaped when it ends, if
  // the run() in which it was spawned goes on. Else it stays a zombie until the next spawn().
  void detach();

  struct Output {
    ExitStatus status;
    std::string output, error;
  };
  // Writes the input and closes it, reads output and error to their ends, all at the same time, and
  // waits for the child. Skips streams that are no pipes. A child that does not read its input is
  // no error. Throws as read, write and wait() do, and std::errc::message_size for more than
  // `limit` bytes of either; then it has killed the child and closed all three streams. Inside
  // run() only.
  Output communicate(std::string_view input = {}, std::size_t limit = 64 << 20);
  Output communicate(std::string_view input, std::size_t limit, std::error_code& error);
  // As communicate(), until the context is over: then it kills the child and throws
  // std::system_error with err().
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
