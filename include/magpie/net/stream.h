// stream.h: bytes both ways, in order: what TCP, Unix and TLS connections have in common.
//
// One goroutine may read while another writes. Several readers take turns, and so do several writers: each read and each
// write is done as a whole. Errors are std::system_error: errc::timed_out when a deadline has passed,
// errc::operation_canceled when close() was called, else what the system says.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string_view>

#include <magpie/detail/deadline.h>
#include <magpie/net/address.h>

namespace magpie::net {

// The peer ended the stream before read_exact() had its bytes.
class EndOfStream : public std::runtime_error {
 public:
  EndOfStream(std::size_t wanted, std::size_t got);
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Blocks until there is at least one byte. Returns how many were read; 0: the peer has ended the stream.
  virtual std::size_t read(std::span<std::byte> into) = 0;
  // Blocks until all bytes are written, one part after the other. After an error some of them may have been.
  virtual void write_parts(std::span<const std::span<const std::byte>> parts) = 0;
  // Tells the peer that no more bytes will come; reading goes on.
  virtual void shutdown_write() = 0;
  // Wakes whoever is blocked. May be called several times and from any goroutine or thread. Does not throw.
  virtual void close() noexcept = 0;

  // Blocks until read() would return at once: for bytes, the end or an error. By default does not block.
  virtual void wait_readable() {}
  // Of the other end; empty if there is none.
  virtual Address remote_address() const { return {}; }
  // The socket, for options of the system; not to be closed. -1: there is none, or it is closed.
  virtual int native_handle() const noexcept { return -1; }

  // Blocks until the whole span is read. Throws EndOfStream too.
  void read_exact(std::span<std::byte> into);
  void write(std::span<const std::byte> bytes) { write_parts({&bytes, 1}); }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  // From then on reading, writing or both fail with errc::timed_out, also where somebody is blocked already. May be moved
  // at any time; TimePoint::max() takes it away. Do not block or throw.
  using TimePoint = std::chrono::steady_clock::time_point;
  void set_read_deadline(TimePoint time) { set_read_deadline_ns(ns_of(time)); }
  void set_write_deadline(TimePoint time) { set_write_deadline_ns(ns_of(time)); }
  void set_deadline(TimePoint time) {
    set_read_deadline(time);
    set_write_deadline(time);
  }
  // The same, so long after now.
  template <class Rep, class Period>
  void set_deadline(std::chrono::duration<Rep, Period> from_now) {
    detail::DeadlineNs ns = detail::deadline_after(from_now);
    set_read_deadline_ns(ns);
    set_write_deadline_ns(ns);
  }

  // In nanoseconds of the steady clock; detail::kNoDeadline takes it away.
  virtual void set_read_deadline_ns(detail::DeadlineNs deadline) noexcept = 0;
  virtual void set_write_deadline_ns(detail::DeadlineNs deadline) noexcept = 0;

 protected:
  Stream() = default;
  Stream(const Stream&) = default;
  Stream& operator=(const Stream&) = default;

 private:
  static detail::DeadlineNs ns_of(TimePoint time) {
    return time == TimePoint::max() ? detail::kNoDeadline : detail::deadline_at(time);
  }
};

}  // namespace magpie::net
