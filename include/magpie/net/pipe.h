// pipe.h: pipes, and the process's standard input, output and error, as streams.
//
// Reading and writing exist with a std::error_code& too.
#pragma once

#include <magpie/detail/cxx20.h>

#include <memory>
#include <system_error>

#include <magpie/net/stream.h>

namespace magpie::io {
class Descriptor;  // src/io/descriptor.h
}

namespace magpie::net {

// One end of a pipe, or another descriptor that can be waited for: a FIFO, a terminal, a device.
// Moves; the destructor closes it. What it cannot do (reading from the end for writing) is
// errc::bad_file_descriptor, and so is everything for one that was moved from. A pipe that nobody
// reads is errc::broken_pipe; there is no SIGPIPE.
class PipeStream : public Stream {
 public:
  PipeStream() noexcept;  // no pipe
  // Takes a descriptor over, and sets it to not block and to be closed on exec. That it does not
  // block holds for all who share it, also in other processes: not for what was inherited, see
  // standard_input(). Throws std::system_error: errc::operation_not_permitted for a regular file;
  // the descriptor is the caller's then.
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
  // The same as close(): a pipe has one direction.
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

struct Pipe {
  PipeStream reader, writer;
};

// What is written to one end is read from the other; the system keeps 64 KiB on their way. Throws
// std::system_error.
Pipe pipe();
Pipe pipe(std::error_code& error);

// The process's standard streams. They may be anything: a terminal, a pipe, a file, a socket; and
// other processes have them too. So their flags stay as they are: a goroutine waits until something
// can be read or written, then calls the system in blocking(). A file is always ready. Where
// several processes read the same terminal, one may be left in its call, with its thread, until
// there is more; close() and deadlines do not end that call.
//
// They are there as long as the process. close() closes this use of them, for good, not the
// descriptors 0, 1 and 2. Nothing is buffered, so what std::cout and printf() have not flushed
// comes later. A reader that has gone is errc::broken_pipe. Throw std::system_error if the
// descriptor is not open.
Stream& standard_input();
Stream& standard_output();
Stream& standard_error();

}  // namespace magpie::net
