// response.h: what a handler answers. Lives as long as the handler runs.
//
//   res.send("all of it");                        one write, with its length
//   res.write("a part"); res.write("more");       in chunks, as a buffer fills or flush() is called
//
// A handler that sends nothing answers 200 without a body. If it only calls write(), and for
// little, the answer is sent with its length when the handler returns.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>

#include <magpie/detail/api.h>

namespace magpie::http {

class Exchange;  // src/http/exchange.h

// The answer to one request.
class MAGPIE_API Response {
 public:
  Response(const Response&) = delete;
  Response& operator=(const Response&) = delete;

  // Sets the status, 200 to 999; it is 200 unless set. Throws std::invalid_argument,
  // std::logic_error once the head has been sent.
  Response& status(int code);
  int status() const;

  // Sets a field, replacing others of that name. Content-Length announces the length of what
  // write() will send; Connection: close ends the connection after this response; Transfer-Encoding
  // is not the handler's. Throws std::invalid_argument for bytes that a field must not contain,
  // std::logic_error once the head has been sent.
  Response& header(std::string_view name, std::string_view value);
  // Adds one more field of that name, as for Set-Cookie. Throws as header().
  Response& add_header(std::string_view name, std::string_view value);

  // Sends the whole response. Blocks until the system has taken it. Throws std::logic_error if
  // something was sent already, std::system_error if the connection fails.
  void send(std::string_view body = {});
  void send(std::span<const std::byte> body) {
    send({reinterpret_cast<const char*>(body.data()), body.size()});
  }

  // Appends to the body. Blocks when the buffer is full. Throws as send(), and std::logic_error for
  // more than was announced.
  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes) {
    write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  // Sends what was written so far, at least the head. Blocks. Throws as send().
  void flush();

  // Without exceptions for a connection that fails. After an error all of them fail: the client
  // has gone, or its time is up.
  void send(std::string_view body, std::error_code& error);
  void send(std::span<const std::byte> body, std::error_code& error) {
    send({reinterpret_cast<const char*>(body.data()), body.size()}, error);
  }
  void write(std::string_view bytes, std::error_code& error);
  void write(std::span<const std::byte> bytes, std::error_code& error) {
    write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, error);
  }
  void flush(std::error_code& error);

  // True if the head is on its way, so that status and headers are settled.
  bool started() const;
  // How many bytes of the body were written so far.
  std::uint64_t body_bytes() const;

 private:
  friend class Exchange;
  explicit Response(Exchange& exchange) : exchange_(exchange) {}
  Exchange& exchange_;
};

}  // namespace magpie::http
