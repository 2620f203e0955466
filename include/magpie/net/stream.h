// stream.h: bytes both ways, in order: what TCP, Unix and TLS connections have in common.
//
// One goroutine may read while another one writes. Several readers take turns, and so do several
// writers: each read and each write is done as a whole. Errors are std::system_error:
// errc::timed_out when a deadline has passed, errc::operation_canceled after close(), else what the
// system says.
//
// Every call that may fail has a form with a std::error_code& at the end. It does not throw; it
// stores the error, or clears the code if there was none. Every call that may block has a form with
// a Context. It ends as soon as the context is over, with the context's error.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>
#include <magpie/net/address.h>

namespace magpie {
class Context;  // magpie/context.h
}

namespace magpie::net {

// Errors for which the system has no number.
enum class StreamErrc {
  end_of_stream = 1  // the peer ended the stream before read_exact() had its bytes
};
MAGPIE_API const std::error_category& stream_errors() noexcept;
inline std::error_code make_error_code(StreamErrc error) noexcept {
  return {static_cast<int>(error), stream_errors()};
}

// StreamErrc::end_of_stream as an exception.
class MAGPIE_API EndOfStream : public std::runtime_error {
 public:
  EndOfStream(std::size_t wanted, std::size_t got);
};

// The base class of all streams.
class MAGPIE_API Stream {
 public:
  using Bytes = std::span<const std::byte>;
  using Parts = std::span<const std::span<const std::byte>>;

  virtual ~Stream() = default;

  // Blocks until there is at least one byte. Returns how many bytes it read. 0: the peer has ended
  // the stream.
  virtual std::size_t read(std::span<std::byte> into) = 0;
  // Blocks until all bytes are written, one part after the other. After an error some of them may
  // have been written.
  virtual void write_parts(Parts parts) = 0;
  // Tells the peer that no more bytes will come. Reading goes on.
  virtual void shutdown_write() = 0;
  // Ends the stream and wakes all blocked callers. Any goroutine or thread may call it, several
  // times. Does not throw.
  virtual void close() noexcept = 0;

  // Blocks until read() would return at once: there are bytes, the end, or an error. The default
  // does not block.
  virtual void wait_readable() {}
  // The address of the peer. Empty: it has none.
  virtual Address remote_address() const { return {}; }
  // The socket, for options of the system. Do not close it. -1: there is none, or it is closed.
  virtual int native_handle() const noexcept { return -1; }

  // Blocks until the whole span is read. Throws EndOfStream too.
  void read_exact(std::span<std::byte> into);
  void write(Bytes bytes) { write_parts({&bytes, 1}); }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  // Without exceptions. Reads and writes return the number of bytes before the error. If the stream
  // ends before read_exact() has all bytes, that is StreamErrc::end_of_stream.
  std::size_t read(std::span<std::byte> into, std::error_code& error);
  std::size_t read_exact(std::span<std::byte> into, std::error_code& error);
  std::size_t write_parts(Parts parts, std::error_code& error);
  std::size_t write(Bytes bytes, std::error_code& error) { return write_parts({&bytes, 1}, error); }
  std::size_t write(std::string_view text, std::error_code& error) {
    return write(std::as_bytes(std::span(text)), error);
  }
  void shutdown_write(std::error_code& error);
  void wait_readable(std::error_code& error);

  // Until the context is over: then they fail at once with its err(). No byte is lost: what was
  // read is returned, and the forms with an error_code return how far read_exact() and write()
  // came.
  std::size_t read(std::span<std::byte> into, const Context& context);
  std::size_t read(std::span<std::byte> into, const Context& context, std::error_code& error);
  void read_exact(std::span<std::byte> into, const Context& context);
  std::size_t read_exact(std::span<std::byte> into, const Context& context, std::error_code& error);
  void write_parts(Parts parts, const Context& context);
  std::size_t write_parts(Parts parts, const Context& context, std::error_code& error);
  void write(Bytes bytes, const Context& context) { write_parts({&bytes, 1}, context); }
  std::size_t write(Bytes bytes, const Context& context, std::error_code& error) {
    return write_parts({&bytes, 1}, context, error);
  }
  void write(std::string_view text, const Context& context) {
    write(std::as_bytes(std::span(text)), context);
  }
  std::size_t write(std::string_view text, const Context& context, std::error_code& error) {
    return write(std::as_bytes(std::span(text)), context, error);
  }
  void wait_readable(const Context& context);
  void wait_readable(const Context& context, std::error_code& error);

  // From that time on, reading, writing or both fail with errc::timed_out, also for callers that
  // are already blocked. May be changed at any time; TimePoint::max() removes the deadline. The
  // time of another clock is converted now. Never block or throw.
  using TimePoint = std::chrono::steady_clock::time_point;
  template <class Clock, class Duration>
  void set_read_deadline(std::chrono::time_point<Clock, Duration> time) noexcept {
    do_set_read_deadline(detail::steady_time(detail::deadline_at(time)));
  }
  template <class Clock, class Duration>
  void set_write_deadline(std::chrono::time_point<Clock, Duration> time) noexcept {
    do_set_write_deadline(detail::steady_time(detail::deadline_at(time)));
  }
  template <class Clock, class Duration>
  void set_deadline(std::chrono::time_point<Clock, Duration> time) noexcept {
    TimePoint when = detail::steady_time(detail::deadline_at(time));
    do_set_read_deadline(when);
    do_set_write_deadline(when);
  }
  // The same, that long after now.
  template <class Rep, class Period>
  void set_read_deadline(std::chrono::duration<Rep, Period> from_now) noexcept {
    do_set_read_deadline(detail::steady_time(detail::deadline_after(from_now)));
  }
  template <class Rep, class Period>
  void set_write_deadline(std::chrono::duration<Rep, Period> from_now) noexcept {
    do_set_write_deadline(detail::steady_time(detail::deadline_after(from_now)));
  }
  template <class Rep, class Period>
  void set_deadline(std::chrono::duration<Rep, Period> from_now) noexcept {
    set_deadline(detail::steady_time(detail::deadline_after(from_now)));
  }

  // For streams of your own: these implement the calls above with an error_code or a context, which
  // may be null. By default they call the functions that throw. If a context ends meanwhile, the
  // default moves both deadlines into the past, where they stay.
  struct Result {
    std::size_t bytes = 0;
    std::error_code error;
  };
  virtual Result read_result(std::span<std::byte> into, const Context* context);
  virtual Result write_result(Parts parts, const Context* context);
  virtual std::error_code shutdown_write_result();
  virtual std::error_code wait_readable_result(const Context* context);

 protected:
  // For streams of your own: these implement the set_ functions above. TimePoint::max() removes the
  // deadline.
  virtual void do_set_read_deadline(TimePoint time) noexcept = 0;
  virtual void do_set_write_deadline(TimePoint time) noexcept = 0;

  Stream() = default;
  Stream(const Stream&) = default;
  Stream& operator=(const Stream&) = default;

 private:
  Result read_all_result(std::span<std::byte> into, const Context* context);
  void throw_if(std::error_code error, const char* what) const;
};

}  // namespace magpie::net

template <>
struct std::is_error_code_enum<magpie::net::StreamErrc> : std::true_type {};
