// client.h: an HTTP client. Any number of goroutines may use a Client at once.
//
//   Client client;
//   Reply reply = client.get("http://localhost:8080/hello/Ada");
//   if (reply.status == 200) use(reply.body);
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <magpie/context.h>
#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>
#include <magpie/http/error.h>
#include <magpie/http/headers.h>
#include <magpie/net/stream.h>
#include <magpie/net/tls.h>

namespace magpie::http {

class ClientCore;   // src/http/client_core.h
class ClientReply;  // src/http/client_reply.h

// A time of 0 means no limit.
struct ClientOptions {
  std::chrono::milliseconds timeout{30'000};  // for all of a request, redirects and body included
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds idle_timeout{50'000};  // kept connections are closed after this time
  std::size_t max_idle_per_host = 64;              // more are closed after their reply
  int max_redirects = 10;                          // 0: a redirect is a reply like others
  std::size_t max_header_bytes = 64 * 1024;
  std::uint64_t max_body_bytes = 64 << 20;       // of a Reply; ReplyStream has no limit
  std::optional<net::TlsClientConfig> tls = {};  // for https; none: the roots of the system
};

struct Reply {
  int status = 0;
  Headers headers;
  std::string body;
  std::string url;  // after redirects

  // The first value of that name; empty if there is none.
  const std::string& header(std::string_view name) const noexcept { return headers.get(name); }
};

// A reply whose body is read as it comes. Gives its connection back to the client when the body has
// been read to its end, and closes it otherwise. One goroutine may use it at a time.
class MAGPIE_API ReplyStream {
 public:
  // Empty, as after an error: status() is 0, and read() fails with errc::bad_file_descriptor.
  ReplyStream() noexcept;
  ReplyStream(ReplyStream&&) noexcept;
  ReplyStream& operator=(ReplyStream&&) noexcept;
  ~ReplyStream();

  bool is_open() const noexcept { return reply_ != nullptr; }
  int status() const;
  const Headers& headers() const;
  const std::string& header(std::string_view name) const { return headers().get(name); }
  const std::string& url() const;
  // Blocks until there is at least one byte of the body. 0: its end. Throws std::system_error,
  // ProtocolError.
  std::size_t read(std::span<std::byte> into);
  std::size_t read(std::span<char> into) { return read(std::as_writable_bytes(into)); }
  // Blocks until the end of the body; returns the rest of it. Throws ProtocolError too if it is
  // longer than that.
  std::string read_all(std::uint64_t at_most);
  // Without exceptions, as Client says it; 0 bytes after an error.
  std::size_t read(std::span<std::byte> into, std::error_code& error);
  std::size_t read(std::span<char> into, std::error_code& error) {
    return read(std::as_writable_bytes(into), error);
  }
  std::string read_all(std::uint64_t at_most, std::error_code& error);

 private:
  friend class ClientCore;
  explicit ReplyStream(std::unique_ptr<ClientReply> reply);
  void check_open() const;
  std::unique_ptr<ClientReply> reply_;
};

// Supplies the body of a request.
class MAGPIE_API BodySource {
 public:
  virtual ~BodySource() = default;
  // Fills some of the span; 0: the body is complete. May block and throw.
  virtual std::size_t read(std::span<std::byte> into) = 0;
  // Nullopt: the body is sent in chunks.
  virtual std::optional<std::uint64_t> size() const { return std::nullopt; }
};

// A request in all its parts:
//
//   client.request({.method = "PUT", .url = url, .body = json, .timeout = 2s,
//                   .context = req.context()});
struct ClientRequest {
  std::string method = "GET";
  std::string url = {};
  Headers headers = {};
  std::string body = {};
  // Instead of `body`. It is read once, so redirects that need it again are not followed.
  BodySource* source = nullptr;
  // For the whole request, redirects and body included. Nullopt: the client's; 0: no limit.
  std::optional<std::chrono::nanoseconds> timeout = {};
  // When it ends, the request fails at once with its err() and the connection is closed; also while
  // the body of a ReplyStream is read.
  Context context = Context::background();
};

// Sends requests and keeps connections for further ones.
class MAGPIE_API Client {
 public:
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Each of these blocks until the reply is there. Throws std::invalid_argument for a URL or header
  // that makes no sense, std::system_error if the connection fails or time is up (errc::timed_out),
  // ProtocolError; their texts name the URL. A status is never an error. Redirects are followed. If
  // a kept connection turns out to be closed, the request is repeated once, provided that it may be
  // (GET, HEAD, OPTIONS, PUT, DELETE, TRACE).
  Reply get(std::string_view url, const Headers& headers = {});
  Reply post(std::string_view url, std::string_view body, const Headers& headers = {});
  Reply request(std::string_view method, std::string_view url, const Headers& headers = {},
                std::string_view body = {});
  Reply request(const ClientRequest& request);

  // As above, but the caller reads the body of the reply.
  ReplyStream open(std::string_view method, std::string_view url, const Headers& headers = {},
                   std::string_view body = {});
  ReplyStream open(const ClientRequest& request);
  // With a body from a source. Redirects that would need it again are not followed.
  ReplyStream open(std::string_view method, std::string_view url, const Headers& headers,
                   BodySource& body);

  // Without exceptions: an empty reply and the error, or none. What would be ProtocolError is
  // errc::protocol_error, a URL or header that makes no sense errc::invalid_argument.
  // std::bad_alloc is thrown, and so is what a BodySource throws that is no std::system_error.
  Reply get(std::string_view url, std::error_code& error);
  Reply get(std::string_view url, const Headers& headers, std::error_code& error);
  Reply post(std::string_view url, std::string_view body, std::error_code& error);
  Reply post(std::string_view url, std::string_view body, const Headers& headers,
             std::error_code& error);
  Reply request(std::string_view method, std::string_view url, std::error_code& error);
  Reply request(std::string_view method, std::string_view url, const Headers& headers,
                std::error_code& error);
  Reply request(std::string_view method, std::string_view url, const Headers& headers,
                std::string_view body, std::error_code& error);
  Reply request(const ClientRequest& request, std::error_code& error);
  ReplyStream open(std::string_view method, std::string_view url, std::error_code& error);
  ReplyStream open(std::string_view method, std::string_view url, const Headers& headers,
                   std::error_code& error);
  ReplyStream open(std::string_view method, std::string_view url, const Headers& headers,
                   std::string_view body, std::error_code& error);
  ReplyStream open(std::string_view method, std::string_view url, const Headers& headers,
                   BodySource& body, std::error_code& error);
  ReplyStream open(const ClientRequest& request, std::error_code& error);

  // For requests that begin from now on.
  template <class Rep, class Period>
  void set_timeout(std::chrono::duration<Rep, Period> timeout) {
    set_timeout_ns(detail::whole_ns(timeout));
  }

  // How many connections are kept for further requests. A snapshot.
  std::size_t idle_connections() const;
  void close_idle_connections();

 private:
  void set_timeout_ns(std::int64_t nanoseconds);
  std::shared_ptr<ClientCore> core_;
};

}  // namespace magpie::http
