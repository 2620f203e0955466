// client_reply.h: a request on its way to a server, and the reply on its way back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include <magpie/context.h>
#include <magpie/http/client.h>
#include <magpie/http/headers.h>
#include <magpie/net/stream.h>

#include "http/client_pool.h"
#include "http/input.h"
#include "http/parser.h"

namespace magpie::http {

// While it lives, the end of the context closes the stream. Its end waits until nobody is in
// between.
class ClosedByContext {
 public:
  ClosedByContext(const Context& context, net::Stream& stream)
      : context_(context), callback_(context_.stop_token(), Close{&stream}) {}

 private:
  struct Close {
    net::Stream* stream;
    void operator()() const noexcept { stream->close(); }
  };
  Context context_;
  std::stop_callback<Close> callback_;
};

class ClientReply {
 public:
  ClientReply(std::unique_ptr<net::Stream> stream, std::shared_ptr<ClientPool> pool,
              std::string key, const Context& context)
      : stream_(std::move(stream)),
        pool_(std::move(pool)),
        key_(std::move(key)),
        context_(context),
        closed_by_context_(std::in_place, context, *stream_) {}

  // Blocks until all is written. A server may answer before it has read everything and close: then
  // what it said counts.
  void send(std::string_view head, std::string_view body);
  void send(std::string_view head, BodySource& body);
  // Blocks until the head of the reply is there. Throws std::system_error, ProtocolError.
  void receive_head(Parser::Kind kind, std::size_t max_header_bytes);
  // Whether the server has said anything.
  bool has_heard() const { return has_heard_; }

  int status() const { return parser_.head().status; }
  const Headers& headers() const { return headers_; }
  std::size_t read(std::span<char> into);
  std::string read_all(std::uint64_t at_most);
  // Reads a short rest, so that the connection can be used again.
  void drain();

  // To be called in a handler: throws the exception again, with what it is about; that of the
  // context if it has ended.
  [[noreturn]] void rethrow() const;

  std::string method;
  std::string url;
  bool may_keep = true;  // the request did not say otherwise

 private:
  enum class Body : std::uint8_t { length, chunked, until_end, read };

  bool send_parts(net::Stream::Parts parts);
  std::size_t receive(std::span<char> into);
  void add_missing_space();
  std::size_t read_length(std::span<char> into);
  std::size_t read_chunks(std::span<char> into);
  void finish();

  std::unique_ptr<net::Stream> stream_;  // null once given back
  std::shared_ptr<ClientPool> pool_;
  std::string key_;
  const Context context_;
  std::optional<ClosedByContext> closed_by_context_;  // ends before the stream
  Input input_;
  Parser parser_;
  Headers headers_;
  std::exception_ptr send_error_;
  bool has_heard_ = false;
  bool keep_ = false;
  Body body_ = Body::read;
  std::uint64_t body_left_ = 0;
  std::size_t max_header_bytes_ = 0;
};

// The same for what happens before there is a reply. `about`: "GET http://…".
[[noreturn]] void rethrow_about(const std::string& about, const Context& context);

}  // namespace magpie::http
