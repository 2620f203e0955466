// client_core.h: what a client's requests share.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <magpie/http/client.h>

#include "http/client_pool.h"
#include "http/client_reply.h"
#include "http/url.h"

namespace magpie::http {

// Makes connections.
class Dialer {
 public:
  virtual ~Dialer() = default;
  // Blocks. Throws std::system_error, std::invalid_argument for a scheme it does not know.
  virtual std::unique_ptr<net::Stream> dial(const Url& url, detail::DeadlineNs deadline) = 0;
};

class ClientCore {
 public:
  ClientCore(const ClientOptions& options, std::shared_ptr<Dialer> dialer);

  // What is asked for. The body is a text, or a source that can be read once.
  struct Question {
    std::string_view method;
    const Headers& headers;
    std::string_view text;
    BodySource* source;
  };
  // Until when, and while what lives.
  struct Limits {
    detail::DeadlineNs deadline;
    Context context;
  };
  // By default what the client allows each request.
  Limits limits(std::optional<std::chrono::nanoseconds> timeout = {},
                const Context& context = Context::background()) const;
  ReplyStream open(const Question& question, std::string_view url, const Limits& limits);
  Reply request(const Question& question, std::string_view url, const Limits& limits);

  const ClientOptions options;
  std::atomic<std::int64_t> timeout_ns;  // atomic, a hint: a setting
  const std::shared_ptr<ClientPool> pool;

 private:
  std::unique_ptr<ClientReply> ask(const Question& question, const Url& url, const Limits& limits);
  std::unique_ptr<ClientReply> ask_on(std::unique_ptr<net::Stream> stream, const Question& question,
                                      const Url& url, const Limits& limits, std::string_view head,
                                      bool& heard);
  std::unique_ptr<net::Stream> dial(const Url& url, const Limits& limits);

  const std::shared_ptr<Dialer> dialer_;
};

}  // namespace magpie::http
