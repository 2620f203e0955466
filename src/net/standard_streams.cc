// standard_streams.cc: descriptors that others share, and that may be of any kind. See pipe.h.
#include <magpie/net/pipe.h>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <magpie/blocking.h>

#include "io/descriptor.h"
#include "net/errors.h"
#include "net/write_quietly.h"

namespace magpie::net {
namespace {

using io::Descriptor;

// Small enough that a pipe which can be written to takes it without blocking.
constexpr std::size_t kPieceOfPipe = PIPE_BUF;
constexpr std::size_t kPieceOfFile = 1 << 20;

bool would_not_block(int fd, short events) {
  pollfd wanted{.fd = fd, .events = events, .revents = 0};
  return ::poll(&wanted, 1, 0) != 0;
}

[[gnu::noinline]] ssize_t read_once(int fd, std::span<std::byte> into) {
  ssize_t count = ::read(fd, into.data(), into.size());
  return count < 0 ? -errno : count;
}

class SharedStream final : public Stream {
 public:
  // Of a number of its own, so that close() and the poller leave the original alone.
  explicit SharedStream(int original)
      : descriptor_(duplicate(original), Descriptor::Kind::packets),
        piece_(is_always_ready(descriptor_.fd()) ? kPieceOfFile : kPieceOfPipe) {}

  std::size_t read(std::span<std::byte> into) override {
    Result result = read_result(into, nullptr);
    if (result.error) fail(result.error, "read from a standard stream");
    return result.bytes;
  }
  Result read_result(std::span<std::byte> into, const Context* context) override {
    if (into.empty()) return {};
    ContextLimit limit(context);
    Descriptor::Operation operation(descriptor_, descriptor_.reader(), "read", limit.get());
    io::Outcome outcome = operation.perform([&](int fd) -> ssize_t {
      if (!would_not_block(fd, POLLIN)) return -EAGAIN;
      return blocking([&] { return read_once(fd, into); });
    });
    return {outcome.count, code_of(outcome.error)};
  }

  void write_parts(Parts parts) override {
    if (Result result = write_result(parts, nullptr); result.error)
      fail(result.error, "write to a standard stream");
  }
  Result write_result(Parts parts, const Context* context) override {
    ContextLimit limit(context);
    UnwrittenParts left(parts);
    Descriptor::Operation operation(descriptor_, descriptor_.writer(), "write", limit.get());
    Result all;
    while (!left.empty() && !all.error) {
      io::Outcome some = operation.perform([&](int fd) -> ssize_t {
        if (!would_not_block(fd, POLLOUT)) return -EAGAIN;
        return blocking([&] { return write_quietly(fd, left, piece_); });
      });
      left.drop(some.count);
      all = {all.bytes + some.count, code_of(some.error)};
    }
    return all;
  }

  void wait_readable() override {
    if (std::error_code error = wait_readable_result(nullptr))
      fail(error, "wait for a standard stream");
  }
  std::error_code wait_readable_result(const Context* context) override {
    ContextLimit limit(context);
    Descriptor::Operation operation(descriptor_, descriptor_.reader(), "wait_readable",
                                    limit.get());
    io::Outcome outcome = operation.perform(
        [](int fd) -> ssize_t { return would_not_block(fd, POLLIN) ? 0 : -EAGAIN; });
    return code_of(outcome.error);
  }

  void shutdown_write() override { descriptor_.close(); }
  void close() noexcept override { descriptor_.close(); }
  int native_handle() const noexcept override { return descriptor_.fd(); }

 private:
  void do_set_read_deadline(TimePoint time) noexcept override {
    descriptor_.set_deadline(descriptor_.reader(), detail::deadline_at(time));
  }
  void do_set_write_deadline(TimePoint time) noexcept override {
    descriptor_.set_deadline(descriptor_.writer(), detail::deadline_at(time));
  }

  [[gnu::noinline]] static int duplicate(int original) {
    int fd = fcntl(original, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) fail(code_of(errno), "use standard stream " + std::to_string(original));
    return fd;
  }
  static bool is_always_ready(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
  }

  Descriptor descriptor_;
  const std::size_t piece_;
};

}  // namespace

// Never destroyed: others may use them until the process has ended.
Stream& standard_input() {
  static Stream& stream = *new SharedStream(STDIN_FILENO);
  return stream;
}
Stream& standard_output() {
  static Stream& stream = *new SharedStream(STDOUT_FILENO);
  return stream;
}
Stream& standard_error() {
  static Stream& stream = *new SharedStream(STDERR_FILENO);
  return stream;
}

}  // namespace magpie::net
