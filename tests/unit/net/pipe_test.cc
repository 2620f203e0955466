// pipe_test.cc: pipes, and the standard streams over whatever they are.
#include <fcntl.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "base/sanitizer.h"
#include "support/net_test.h"

namespace magpie::net {
namespace {

using namespace std::chrono_literals;
using support::error_of;
using support::read_all;
using support::read_text;

std::error_code code(std::errc error) { return std::make_error_code(error); }

RT_TEST(Pipe, CarriesMoreThanItHolds) {
  Pipe ends = pipe();
  const std::string text(1 << 20, 'x');
  go([writer = std::move(ends.writer), &text]() mutable { writer.write(text); });
  EXPECT_EQ(read_all(ends.reader), text);
}

RT_TEST(Pipe, HasDeadlinesAndIsClosedUnderWhoWaits) {
  Pipe ends = pipe();
  std::byte one[1];
  ends.reader.set_deadline(1ms);
  EXPECT_EQ(error_of([&] { (void)ends.reader.read(one); }), code(std::errc::timed_out));
  ends.reader.set_deadline(Stream::TimePoint::max());
  JoinHandle<std::error_code> reader = spawn([&] {
    std::error_code error;
    std::byte bytes[1];
    (void)ends.reader.read(bytes, error);
    return error;
  });
  ASSERT_TRUE(support::waiting(1));
  ends.reader.close();
  EXPECT_EQ(reader.join(), code(std::errc::operation_canceled));
}

RT_TEST(Pipe, WithoutAReaderIsAnErrorAndNoSignal) {
  Pipe ends = pipe();
  ends.reader.close();
  std::error_code error;
  ends.writer.write("x", error);
  EXPECT_EQ(error, std::errc::broken_pipe);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

RT_TEST(Pipe, HasOneDirection) {
  Pipe ends = pipe();
  std::byte one[1];
  EXPECT_EQ(error_of([&] { (void)ends.writer.read(one); }), code(std::errc::bad_file_descriptor));
  EXPECT_EQ(error_of([&] { ends.reader.write("x"); }), code(std::errc::bad_file_descriptor));
  ends.writer.write("last");
  ends.writer.shutdown_write();
  EXPECT_EQ(read_all(ends.reader), "last");
  PipeStream moved = std::move(ends.reader);
  EXPECT_EQ(error_of([&] { (void)ends.reader.read(one); }), code(std::errc::bad_file_descriptor));
  EXPECT_EQ(fcntl(moved.native_handle(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

RT_TEST(Pipe, AdoptsWhatCanBeWaitedForOnly) {
  std::error_code error;
  int file = open("/proc/self/exe", O_RDONLY);
  (void)PipeStream::adopt(file, error);
  EXPECT_EQ(error, std::errc::operation_not_permitted);
  EXPECT_EQ(fcntl(file, F_GETFD), 0);
  EXPECT_EQ(fcntl(file, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(close(file), 0);  // it is still ours
  (void)PipeStream::adopt(-1, error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
}

RT_TEST(TcpListener, AdoptsASocketThatListens) {
  TcpListener first = TcpListener::bind("127.0.0.1:0");
  const std::string address = first.local_address().to_string();
  int handed_over = dup(first.native_handle());
  first.close();
  TcpListener listener = TcpListener::adopt(handed_over);
  EXPECT_EQ(fcntl(handed_over, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  JoinHandle<TcpConn> client = spawn([&] { return TcpConn::connect(address); });
  TcpConn server = listener.accept();
  server.write("hello");
  TcpConn conn = client.join();
  EXPECT_EQ(read_text(conn, 5), "hello");
  int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(error_of([&] { (void)TcpListener::adopt(other); }), code(std::errc::invalid_argument));
  EXPECT_EQ(close(other), 0);
}

#if !defined(MAGPIE_TSAN) && \
    !defined(MAGPIE_ASAN)  // they do not support threads in the child of a program with threads
// Puts a descriptor in the place of another while it lives. The standard streams are made once, so
// this is for a child.
int in_child(int place, int fd, int (*body)()) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    dup2(fd, place);
    _exit(run(Options{.procs = 2}, body));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct Raw {
  Raw() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  ~Raw() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int ends[2];
};

bool blocks(int fd) { return (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0; }

TEST(StandardStreams, WaitForAPipeWithoutChangingIt) {
  Raw raw;
  int result = in_child(STDIN_FILENO, raw.ends[0], [] {
    Stream& in = standard_input();
    in.set_deadline(1ms);
    std::byte one[1];
    if (error_of([&] { (void)in.read(one); }) != code(std::errc::timed_out)) return 1;
    if (!blocks(STDIN_FILENO)) return 2;
    in.close();
    if (fcntl(STDIN_FILENO, F_GETFD) < 0) return 3;
    return error_of([&] { (void)in.read(one); }) == code(std::errc::operation_canceled) ? 0 : 4;
  });
  EXPECT_EQ(result, 0);
}

TEST(StandardStreams, ReadAFile) {
  std::FILE* file = std::tmpfile();
  std::fputs("one\ntwo\n", file);
  std::fflush(file);
  lseek(fileno(file), 0, SEEK_SET);
  int result = in_child(STDIN_FILENO, fileno(file), [] {
    BufferedReader reader(standard_input());
    return reader.read_line() == "one" && reader.read_line() == "two" && !reader.read_line() ? 0
                                                                                             : 1;
  });
  std::fclose(file);
  EXPECT_EQ(result, 0);
}

TEST(StandardStreams, WriteMoreThanAPipeHoldsWhileOthersRun) {
  Raw raw;
  std::thread reader([&] {
    std::size_t left = 1 << 20;
    char bytes[5000];
    while (left != 0) {
      ssize_t count = ::read(raw.ends[0], bytes, sizeof bytes);
      if (count <= 0) break;
      left -= static_cast<std::size_t>(count);
    }
    EXPECT_EQ(left, 0U);
  });
  int result = in_child(STDOUT_FILENO, raw.ends[1], [] {
    standard_output().write(std::string(1 << 20, 'x'));
    return blocks(STDOUT_FILENO) ? 0 : 1;
  });
  reader.join();
  EXPECT_EQ(result, 0);
}

TEST(StandardStreams, WithoutAReaderAreAnErrorAndNoSignal) {
  Raw raw;
  ::close(raw.ends[0]);
  raw.ends[0] = -1;
  int result = in_child(STDOUT_FILENO, raw.ends[1], [] {
    return error_of([] { standard_output().write("x"); }) == code(std::errc::broken_pipe) ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}
#endif

}  // namespace
}  // namespace magpie::net
