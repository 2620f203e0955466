// client_core.h: what a client's requests share.
#pragma once

#include <atomic>
#include <memory>
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
  ClientCore(const ClientOptions& options, std::unique_ptr<Dialer> dialer);

  // What is asked for. The body is a text, or a source that can be read once.
  struct Question {
    std::string_view method;
    const Headers& headers;
    std::string_view text;
    BodySource* source;
  };
  ReplyStream open(const Question& question, std::string_view url);

  const ClientOptions options;
  std::atomic<std::int64_t> timeout_ns;  // atomic, a hint: a setting
  const std::shared_ptr<ClientPool> pool;

 private:
  std::unique_ptr<ClientReply> ask(const Question& question, const Url& url,
                                   detail::DeadlineNs deadline);
  std::unique_ptr<ClientReply> ask_on(std::unique_ptr<net::Stream> stream, const Question& question,
                                      const Url& url, std::string_view head, bool& heard);

  const std::unique_ptr<Dialer> dialer_;
};

}  // namespace magpie::http
