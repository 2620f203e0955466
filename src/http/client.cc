#include <magpie/http/client.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/chan.h>
#include <magpie/go.h>
#include <magpie/mutex.h>
#include <magpie/net/tcp.h>
#include <magpie/net/tls.h>
#include <magpie/select.h>

#include "http/client_core.h"
#include "http/text.h"

namespace magpie::http {

namespace {

class SocketDialer final : public Dialer {
 public:
  explicit SocketDialer(const std::optional<net::TlsClientConfig>& tls) : tls_(tls) {}

  std::unique_ptr<net::Stream> dial(const Url& url, detail::DeadlineNs deadline) override {
    const net::Stream::TimePoint time = detail::steady_time(deadline);
    if (url.scheme == "https") {
      return std::make_unique<net::TlsConn>(
          net::TlsConn::connect(url.host_and_port(), tls_config(), time));
    }
    return std::make_unique<net::TcpConn>(net::TcpConn::connect(url.host_and_port(), time));
  }

 private:
  // Reading all the certificates that the system trusts takes a while: only when one is needed.
  const net::TlsClientConfig& tls_config() {
    std::lock_guard hold(lock_);
    if (!tls_) tls_.emplace();
    return *tls_;
  }

  Mutex lock_;
  std::optional<net::TlsClientConfig> tls_;
};

bool may_be_repeated(std::string_view method) {
  constexpr std::string_view kMethods[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"};
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

bool usually_has_body(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

void append_field(std::string& head, std::string_view name, std::string_view value) {
  if (!is_field_name(name) || !is_field_value(value))
    throw std::invalid_argument("magpie: Client: bytes that may not stand in the header \"" +
                                std::string(name) + "\"");
  if (same_name(name, "Content-Length") || same_name(name, "Transfer-Encoding"))
    throw std::invalid_argument("magpie: Client: " + std::string(name) + " is set by the client");
  head.append(name).append(": ").append(value).append("\r\n");
}

std::string head_of(const ClientCore::Question& question, const Url& url) {
  if (!is_field_name(question.method))
    throw std::invalid_argument("magpie: Client: a method that is none");
  if (question.method == kTunnelMethod)
    throw std::invalid_argument("magpie: Client: it makes no tunnels, so CONNECT is refused");
  std::string head(question.method);
  head.append(" ").append(url.target).append(" HTTP/1.1\r\n");
  if (!question.headers.has("Host")) append_field(head, "Host", url.authority());
  for (const auto& [name, value] : question.headers) append_field(head, name, value);
  if (question.source != nullptr && !question.source->size()) {
    head.append("Transfer-Encoding: chunked\r\n");
  } else if (question.source != nullptr || !question.text.empty() ||
             usually_has_body(question.method)) {
    head.append("Content-Length: ");
    append_number(head,
                  question.source != nullptr ? *question.source->size() : question.text.size());
    head.append("\r\n");
  }
  return head.append("\r\n");
}

// f(), or an empty result and the error.
template <class F>
auto without_throwing(std::error_code& error, F f) -> decltype(f()) {
  error.clear();
  try {
    return f();
  } catch (const std::system_error& thrown) {
    error = thrown.code();
  } catch (const ProtocolError&) {
    error = std::make_error_code(std::errc::protocol_error);
  } catch (const std::invalid_argument&) {
    error = std::make_error_code(std::errc::invalid_argument);
  }
  return decltype(f())();
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

ClientCore::ClientCore(const ClientOptions& its_options, std::shared_ptr<Dialer> dialer)
    : options(its_options),
      timeout_ns(detail::whole_ns(its_options.timeout)),
      pool(std::make_shared<ClientPool>(its_options.max_idle_per_host, its_options.idle_timeout)),
      dialer_(std::move(dialer)) {}

std::unique_ptr<ClientReply> ClientCore::ask_on(std::unique_ptr<net::Stream> stream,
                                                const Question& question, const Url& url,
                                                const Limits& limits, std::string_view head,
                                                bool& heard) {
  stream->set_deadline(detail::steady_time(limits.deadline));
  auto reply = std::make_unique<ClientReply>(
      std::move(stream), pool, url.scheme + "://" + url.host_and_port(), limits.context);
  reply->method = question.method;
  reply->url = url.to_string();
  if (has_option(question.headers.get("Connection"), "close")) reply->may_keep = false;
  try {
    if (question.source != nullptr) {
      reply->send(head, *question.source);
    } else {
      reply->send(head, question.text);
    }
    reply->receive_head(
        question.method == "HEAD" ? Parser::Kind::response_to_head : Parser::Kind::response,
        options.max_header_bytes);
  } catch (...) {
    heard = reply->has_heard();
    throw;
  }
  return reply;
}

ClientCore::Limits ClientCore::limits(std::optional<std::chrono::nanoseconds> timeout,
                                      const Context& context) const {
  const std::int64_t limit =
      timeout ? detail::whole_ns(*timeout) : timeout_ns.load(std::memory_order_relaxed);
  detail::DeadlineNs deadline =
      limit == 0 ? detail::kNoDeadline : detail::deadline_after(std::chrono::nanoseconds(limit));
  if (auto end = context.deadline()) deadline = std::min(deadline, detail::deadline_at(*end));
  return {deadline, context};
}

// An attempt to connect cannot be called off. If somebody may lose patience it is made by a
// goroutine of its own, which closes what comes too late.
std::unique_ptr<net::Stream> ClientCore::dial(const Url& url, const Limits& limits) {
  detail::DeadlineNs deadline = limits.deadline;
  if (options.connect_timeout.count() != 0)
    deadline = std::min(deadline, detail::deadline_after(options.connect_timeout));
  if (!limits.context.stop_token().stop_possible()) return dialer_->dial(url, deadline);
  struct Dialed {
    std::unique_ptr<net::Stream> stream;
    std::exception_ptr error;
  };
  Chan<Dialed> finished(1);
  go([dialer = dialer_, url, deadline, finished]() mutable {
    Dialed dialed;
    try {
      dialed.stream = dialer->dial(url, deadline);
    } catch (...) {
      dialed.error = std::current_exception();
    }
    finished.send(std::move(dialed));
  });
  std::optional<Dialed> dialed;
  select(on_recv(finished, [&](std::optional<Dialed> one) { dialed = std::move(one); }),
         on_recv(limits.context.done(), [](bool) {}));
  if (!dialed) throw std::system_error(limits.context.err(), "magpie: connect");
  if (dialed->error != nullptr) std::rethrow_exception(dialed->error);
  return std::move(dialed->stream);
}

std::unique_ptr<ClientReply> ClientCore::ask(const Question& question, const Url& url,
                                             const Limits& limits) {
  const std::string head = head_of(question, url);
  try {
    if (std::error_code over = limits.context.err())
      throw std::system_error(over, "magpie: not begun");
    bool heard = false;
    if (auto kept = pool->take(url.scheme + "://" + url.host_and_port())) {
      try {
        return ask_on(std::move(kept), question, url, limits, head, heard);
      } catch (const std::system_error& error) {
        // The server may have closed it just now. What it may do twice, and has not begun to
        // answer, is asked again.
        if (heard || question.source != nullptr || !may_be_repeated(question.method) ||
            error.code() == std::errc::timed_out || error.code() == std::errc::operation_canceled)
          throw;
      }
    }
    return ask_on(dial(url, limits), question, url, limits, head, heard);
  } catch (...) {
    rethrow_about(std::string(question.method) + " " + url.to_string(), limits.context);
  }
}

ReplyStream ClientCore::open(const Question& question, std::string_view url_text,
                             const Limits& limits) {
  Url url = Url::parse(url_text);
  Headers headers = question.headers;
  std::string method(question.method);
  std::string_view text = question.text;
  BodySource* source = question.source;
  for (int redirects = 0;; ++redirects) {
    auto reply = ask({method, headers, text, source}, url, limits);
    const std::string location = reply->headers().get("Location");
    if (!is_redirect(reply->status()) || location.empty() || options.max_redirects == 0)
      return ReplyStream(std::move(reply));
    const int status = reply->status();
    const bool becomes_get =
        (status == 303 && method != "HEAD") || (status <= 302 && method == "POST");
    if (source != nullptr && !becomes_get) return ReplyStream(std::move(reply));
    Url to;
    try {
      if (redirects == options.max_redirects) throw ProtocolError("magpie: too many redirects");
      reply->drain();
      to = url.resolve(location);
    } catch (const std::invalid_argument& error) {
      throw ProtocolError("magpie: " + method + " " + reply->url +
                          ": a redirect to nowhere: " + error.what());
    } catch (...) {
      reply->rethrow();
    }
    if (becomes_get) {
      method = "GET";
      text = {};
      source = nullptr;
      for (const char* name :
           {"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"})
        headers.remove(name);
    }
    if (!to.same_origin(url)) {
      // Not for somebody else's eyes.
      for (const char* name : {"Authorization", "Cookie", "Proxy-Authorization", "Host"})
        headers.remove(name);
    }
    url = std::move(to);
  }
}

Reply ClientCore::request(const Question& question, std::string_view url, const Limits& limits) {
  ReplyStream stream = open(question, url, limits);
  Reply reply;
  reply.status = stream.status();
  reply.headers = stream.headers();
  reply.url = stream.url();
  reply.body = stream.read_all(options.max_body_bytes);
  return reply;
}

// ---- Client

Client::Client(ClientOptions options)
    : core_(std::make_shared<ClientCore>(options, std::make_shared<SocketDialer>(options.tls))) {}
Client::~Client() { core_->pool->clear(); }

ReplyStream Client::open(std::string_view method, std::string_view url, const Headers& headers,
                         std::string_view body) {
  return core_->open({method, headers, body, nullptr}, url, core_->limits());
}
ReplyStream Client::open(std::string_view method, std::string_view url, const Headers& headers,
                         BodySource& body) {
  return core_->open({method, headers, {}, &body}, url, core_->limits());
}
ReplyStream Client::open(const ClientRequest& request) {
  return core_->open({request.method, request.headers, request.body, request.source}, request.url,
                     core_->limits(request.timeout, request.context));
}
Reply Client::request(std::string_view method, std::string_view url, const Headers& headers,
                      std::string_view body) {
  return core_->request({method, headers, body, nullptr}, url, core_->limits());
}
Reply Client::request(const ClientRequest& request) {
  return core_->request({request.method, request.headers, request.body, request.source},
                        request.url, core_->limits(request.timeout, request.context));
}
Reply Client::get(std::string_view url, const Headers& headers) {
  return request("GET", url, headers);
}
Reply Client::post(std::string_view url, std::string_view body, const Headers& headers) {
  return request("POST", url, headers, body);
}
Reply Client::get(std::string_view url, std::error_code& error) { return get(url, {}, error); }
Reply Client::get(std::string_view url, const Headers& headers, std::error_code& error) {
  return without_throwing(error, [&] { return get(url, headers); });
}
Reply Client::post(std::string_view url, std::string_view body, std::error_code& error) {
  return post(url, body, {}, error);
}
Reply Client::post(std::string_view url, std::string_view body, const Headers& headers,
                   std::error_code& error) {
  return without_throwing(error, [&] { return post(url, body, headers); });
}
Reply Client::request(std::string_view method, std::string_view url, std::error_code& error) {
  return request(method, url, {}, {}, error);
}
Reply Client::request(std::string_view method, std::string_view url, const Headers& headers,
                      std::error_code& error) {
  return request(method, url, headers, {}, error);
}
Reply Client::request(std::string_view method, std::string_view url, const Headers& headers,
                      std::string_view body, std::error_code& error) {
  return without_throwing(error, [&] { return request(method, url, headers, body); });
}
Reply Client::request(const ClientRequest& request, std::error_code& error) {
  return without_throwing(error, [&] { return this->request(request); });
}
ReplyStream Client::open(std::string_view method, std::string_view url, std::error_code& error) {
  return open(method, url, {}, std::string_view(), error);
}
ReplyStream Client::open(std::string_view method, std::string_view url, const Headers& headers,
                         std::error_code& error) {
  return open(method, url, headers, std::string_view(), error);
}
ReplyStream Client::open(std::string_view method, std::string_view url, const Headers& headers,
                         std::string_view body, std::error_code& error) {
  return without_throwing(error, [&] { return open(method, url, headers, body); });
}
ReplyStream Client::open(std::string_view method, std::string_view url, const Headers& headers,
                         BodySource& body, std::error_code& error) {
  return without_throwing(error, [&] { return open(method, url, headers, body); });
}
ReplyStream Client::open(const ClientRequest& request, std::error_code& error) {
  return without_throwing(error, [&] { return open(request); });
}
void Client::set_timeout_ns(std::int64_t nanoseconds) {
  core_->timeout_ns.store(nanoseconds, std::memory_order_relaxed);
}
std::size_t Client::idle_connections() const { return core_->pool->size(); }
void Client::close_idle_connections() { core_->pool->clear(); }

// ---- ReplyStream

ReplyStream::ReplyStream() noexcept = default;
ReplyStream::ReplyStream(std::unique_ptr<ClientReply> reply) : reply_(std::move(reply)) {}
ReplyStream::ReplyStream(ReplyStream&&) noexcept = default;
ReplyStream& ReplyStream::operator=(ReplyStream&&) noexcept = default;
ReplyStream::~ReplyStream() = default;
int ReplyStream::status() const { return is_open() ? reply_->status() : 0; }
const Headers& ReplyStream::headers() const {
  static const Headers none;
  return is_open() ? reply_->headers() : none;
}
const std::string& ReplyStream::url() const {
  static const std::string none;
  return is_open() ? reply_->url : none;
}
void ReplyStream::check_open() const {
  if (!is_open())
    throw std::system_error(std::make_error_code(std::errc::bad_file_descriptor),
                            "magpie: read from a reply that is empty");
}
std::size_t ReplyStream::read(std::span<std::byte> into) {
  check_open();
  try {
    return reply_->read({reinterpret_cast<char*>(into.data()), into.size()});
  } catch (...) {
    reply_->rethrow();
  }
}
std::string ReplyStream::read_all(std::uint64_t at_most) {
  check_open();
  try {
    return reply_->read_all(at_most);
  } catch (...) {
    reply_->rethrow();
  }
}
std::size_t ReplyStream::read(std::span<std::byte> into, std::error_code& error) {
  return without_throwing(error, [&] { return read(into); });
}
std::string ReplyStream::read_all(std::uint64_t at_most, std::error_code& error) {
  return without_throwing(error, [&] { return read_all(at_most); });
}

}  // namespace magpie::http
