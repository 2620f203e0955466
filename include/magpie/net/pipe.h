// pipe.h: pipes, and the standard input, output and error of the process, as streams.
//
// Reading and writing have forms with a std::error_code& too.
#pragma once

#include <magpie/detail/cxx20.h>

#include <memory>
#include <system_error>

#include <magpie/detail/api.h>
#include <magpie/net/stream.h>

namespace magpie::io {
class Descriptor;  // src/io/descriptor.h
}

namespace magpie::net {

// One end of a pipe, or another descriptor that can be waited for: a FIFO, a terminal, a device.
// Movable; the destructor closes it. An operation that it does not support (reading from the write
// end) fails with errc::bad_file_descriptor, and so does every operation on one that was moved
// from. Writing to a pipe that nobody reads fails with errc::broken_pipe; there is no SIGPIPE.
class MAGPIE_API PipeStream : public Stream {
 public:
  PipeStream() noexcept;  // no pipe
  // Takes a descriptor over, makes it non-blocking and sets close-on-exec. Non-blocking holds for
  // all that share the descriptor, in other processes too: do not adopt inherited ones, see
  // standard_input(). Throws std::system_error: errc::operation_not_permitted for a regular file;
  // then the descriptor stays the caller's.
  static PipeStream adopt(int fd);
  static PipeStream adopt(int fd, std::error_code& error);
  PipeStream(PipeStream&&) noexcept;
  PipeStream& operator=(PipeStream&&) noexcept;
  ~PipeStream() override;

  using Stream::read;
  using Stream::shutdown_write;
  using Stream::wait_readable;
  using Stream::write_parts;
  std::size_t read(std::span<std::byte> into) override;
  void write_parts(Parts parts) override;
  // As close(): a pipe has one direction.
  void shutdown_write() override;
  void close() noexcept override;
  void wait_readable() override;
  int native_handle() const noexcept override;
  Result read_result(std::span<std::byte> into, const Context* context) override;
  Result write_result(Parts parts, const Context* context) override;
  std::error_code wait_readable_result(const Context* context) override;

 private:
  void do_set_read_deadline(TimePoint time) noexcept override;
  void do_set_write_deadline(TimePoint time) noexcept override;

  std::unique_ptr<io::Descriptor> descriptor_;  // null: none
};

// Both ends of a pipe.
struct Pipe {
  PipeStream reader, writer;
};

// Makes a pipe: bytes written to one end are read from the other. The system holds 64 KiB on their
// way. Throws std::system_error.
MAGPIE_API Pipe pipe();
MAGPIE_API Pipe pipe(std::error_code& error);

// The standard streams of the process. Each may be anything: a terminal, a pipe, a file, a socket;
// and other processes may share it. So their flags stay as they are: a goroutine waits until the
// descriptor is ready, then calls the system in blocking(). A file is always ready. If several
// processes read the same terminal, a goroutine may stay in its call, with its thread, until there
// is more; close() and deadlines do not end that call.
//
// They live as long as the process. close() closes this use of them for good, not the descriptors
// 0, 1 and 2. Nothing is buffered, so what std::cout and printf() have not flushed comes later.
// Writing to a reader that has gone fails with errc::broken_pipe. Throw std::system_error if the
// descriptor is not open.
MAGPIE_API Stream& standard_input();
MAGPIE_API Stream& standard_output();
MAGPIE_API Stream& standard_error();

}  // namespace magpie::net
