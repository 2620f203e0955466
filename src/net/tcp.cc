#include <magpie/net/tcp.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include <magpie/chan.h>
#include <magpie/context.h>
#include <magpie/go.h>
#include <magpie/select.h>
#include <magpie/time.h>

#include "net/errors.h"
#include "net/host_port.h"
#include "net/resolve.h"
#include "net/socket.h"

namespace magpie::net {
namespace {

using io::Descriptor;

constexpr std::chrono::milliseconds kHeadStart(250);
constexpr std::chrono::seconds kKeepAlive(15);

std::unique_ptr<Descriptor> open_tcp(const Address& address, std::error_code& error) {
  return open_socket(address.family(), SOCK_STREAM, Descriptor::Kind::stream, error);
}

// Small messages are sent at once.
std::error_code send_at_once(const Descriptor& descriptor) {
  return set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
}

// Addresses of the two families in turn, beginning with the first one's: if one family does not
// work at all, the second attempt finds out.
std::vector<Address> in_turn(const std::vector<Address>& all) {
  std::vector<Address> mixed, others;
  for (const Address& address : all)
    (address.family() == all.front().family() ? mixed : others).push_back(address);
  for (std::size_t i = 0; i < others.size(); ++i)
    mixed.insert(mixed.begin() + static_cast<std::ptrdiff_t>(std::min(2 * i + 1, mixed.size())),
                 others[i]);
  return mixed;
}

// A connection, or why there is none; of this address.
struct Attempt {
  Address address;
  std::unique_ptr<Descriptor> descriptor;
  std::error_code error;
};

Attempt connect_one(const Address& address, detail::DeadlineNs deadline, const Context* context) {
  Attempt attempt{address, nullptr, {}};
  std::unique_ptr<Descriptor> descriptor = open_tcp(address, attempt.error);
  if (attempt.error) return attempt;
  descriptor->set_deadline(descriptor->writer(), deadline);
  attempt.error = connect_to(*descriptor, address, context);
  descriptor->set_deadline(descriptor->writer(), detail::kNoDeadline);
  if (!attempt.error) attempt.descriptor = std::move(descriptor);
  return attempt;
}

// Several addresses race, each with a head start over the next; a failure starts the next at once.
class Race {
 public:
  Race(std::vector<Address> addresses, detail::DeadlineNs deadline, const Context& context)
      : addresses_(std::move(addresses)),
        deadline_(deadline),
        context_(context.with_cancel()),
        finished_(addresses_.size()) {}
  // Losers end.
  ~Race() { context_.cancel(); }

  // The winner, or the first that failed, or that the time is up.
  Attempt run() {
    std::size_t running = 0, next = 0;
    std::optional<Attempt> first_failure;
    while (next < addresses_.size() || running != 0) {
      if (next < addresses_.size()) {
        start(addresses_[next++]);
        ++running;
      }
      std::optional<Attempt> result = wait(next < addresses_.size());
      if (!result) continue;  // the head start is over
      --running;
      if (result->descriptor != nullptr) return std::move(*result);
      if (!first_failure) first_failure = std::move(result);
    }
    // An attempt that was given up when the time was up says nothing about the peer, and the other
    // attempts say nothing about that one.
    if (std::error_code over = error_of_limit()) return {Address(), nullptr, over};
    return std::move(*first_failure);
  }

 private:
  std::error_code error_of_limit() const {
    if (std::error_code over = context_.err()) return over;
    return code_of(deadline_ <= detail::steady_now_ns() ? ETIMEDOUT : 0);
  }

  // The losers' channel has room, and dies with the last of them.
  void start(const Address& address) {
    go([address, deadline = deadline_, context = context_, finished = finished_]() mutable {
      finished.send(connect_one(address, deadline, &context));
    });
  }

  std::optional<Attempt> wait(bool others_wait) {
    if (!others_wait) return finished_.recv();
    std::optional<Attempt> got;
    select(on_recv(finished_, [&](std::optional<Attempt> result) { got = std::move(result); }),
           on_timeout(kHeadStart, [] {}));
    return got;
  }

  const std::vector<Address> addresses_;
  const detail::DeadlineNs deadline_;
  const Context context_;
  Chan<Attempt> finished_;
};

// `address` is empty if it failed before there was one.
Attempt connect_any(const HostPort& to, detail::DeadlineNs deadline, const Context* context) {
  Attempt failed;
  std::vector<Address> addresses =
      look_up(to.host.empty() ? "localhost" : to.host, deadline, context, failed.error);
  if (failed.error) return failed;
  for (Address& address : addresses) address = address.with_port(to.port);
  if (addresses.size() == 1) return connect_one(addresses.front(), deadline, context);
  return Race(in_turn(addresses), deadline, context == nullptr ? Context::background() : *context)
      .run();
}

std::string connecting_at(std::string_view host_and_port, const Address& address) {
  std::string text = connecting(host_and_port);
  std::string which = address.to_string();
  return which.empty() || which == host_and_port ? text : text + " (" + which + ')';
}

// Throws std::invalid_argument for a text that is no address.
Attempt connect_with(std::string_view host_and_port, detail::DeadlineNs deadline,
                     const Context* context) {
  Attempt attempt = connect_any(split_host_port(host_and_port), deadline, context);
  if (!attempt.error) attempt.error = send_at_once(*attempt.descriptor);
  if (!attempt.error) attempt.error = keep_alive(*attempt.descriptor, kKeepAlive);
  return attempt;
}

Attempt connect_without_throwing(std::string_view host_and_port, detail::DeadlineNs deadline,
                                 const Context* context, std::error_code& error) {
  error.clear();
  Attempt attempt =
      without_throwing(error, [&] { return connect_with(host_and_port, deadline, context); });
  if (attempt.error) error = attempt.error;
  return attempt;
}

Attempt connect_or_throw(std::string_view host_and_port, detail::DeadlineNs deadline,
                         const Context* context) {
  Attempt attempt = connect_with(host_and_port, deadline, context);
  if (attempt.error) fail(attempt.error, connecting_at(host_and_port, attempt.address));
  return attempt;
}

}  // namespace

TcpConn TcpConn::connect(std::string_view host_and_port) {
  return connect_until_ns(host_and_port, detail::kNoDeadline);
}
TcpConn TcpConn::connect(std::string_view host_and_port, std::error_code& error) {
  return connect_until_ns(host_and_port, detail::kNoDeadline, error);
}
TcpConn TcpConn::connect_until_ns(std::string_view host_and_port, detail::DeadlineNs deadline) {
  Attempt done = connect_or_throw(host_and_port, deadline, nullptr);
  return TcpConn(std::move(done.descriptor), done.address);
}
TcpConn TcpConn::connect_until_ns(std::string_view host_and_port, detail::DeadlineNs deadline,
                                  std::error_code& error) {
  Attempt done = connect_without_throwing(host_and_port, deadline, nullptr, error);
  return error ? TcpConn() : TcpConn(std::move(done.descriptor), done.address);
}
TcpConn TcpConn::connect(std::string_view host_and_port, const Context& context) {
  Attempt done = connect_or_throw(host_and_port, detail::kNoDeadline, &context);
  return TcpConn(std::move(done.descriptor), done.address);
}
TcpConn TcpConn::connect(std::string_view host_and_port, const Context& context,
                         std::error_code& error) {
  Attempt done = connect_without_throwing(host_and_port, detail::kNoDeadline, &context, error);
  return error ? TcpConn() : TcpConn(std::move(done.descriptor), done.address);
}

TcpConn TcpConn::adopt(int fd, std::error_code& error) {
  std::unique_ptr<Descriptor> descriptor =
      adopt_socket(fd, AF_INET, Expected::connected, Descriptor::Kind::stream, error);
  if (error) return {};
  std::error_code ignored;  // it has a peer
  Address peer = remote_address_of(descriptor.get(), ignored);
  return TcpConn(std::move(descriptor), peer);
}
TcpConn TcpConn::adopt(int fd) {
  std::error_code error;
  TcpConn conn = adopt(fd, error);
  if (error) fail(error, adopting(fd) + " as a TCP connection");
  return conn;
}

void TcpConn::set_keep_alive(std::chrono::seconds idle, std::error_code& error) {
  error = descriptor() == nullptr ? code_of(EBADF) : keep_alive(*descriptor(), idle);
}
void TcpConn::set_keep_alive(std::chrono::seconds idle) {
  std::error_code error;
  set_keep_alive(idle, error);
  if (error) fail(error, "set_keep_alive");
}

// ---- listening

namespace {

// Throws std::invalid_argument for a text that is no address. The context may be null.
std::unique_ptr<Descriptor> listen_tcp(std::string_view host_and_port, const BindOptions& options,
                                       const Context* context, std::error_code& error) {
  Address address = address_to_bind(host_and_port, context, error);
  if (error) return nullptr;
  std::unique_ptr<Descriptor> descriptor = open_tcp(address, error);
  if (error) return nullptr;
  // ":80" means IPv4 too, whatever the system's default is.
  bool both_families = address.family() == AF_INET6 && host_and_port.front() == ':';
  if ((error = set_option(*descriptor, SOL_SOCKET, SO_REUSEADDR, 1))) return nullptr;
  if (options.reuse_port && (error = set_option(*descriptor, SOL_SOCKET, SO_REUSEPORT, 1)))
    return nullptr;
  if (both_families && (error = set_option(*descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0)))
    return nullptr;
  // Those that are accepted begin with it.
  if ((error = keep_alive(*descriptor, options.keep_alive))) return nullptr;
  if ((error = bind_to(*descriptor, address))) return nullptr;
  if ((error = listen_on(*descriptor, options.backlog))) return nullptr;
  return descriptor;
}

std::unique_ptr<Descriptor> listen_or_throw(std::string_view host_and_port,
                                            const BindOptions& options, const Context* context) {
  std::error_code error;
  std::unique_ptr<Descriptor> descriptor = listen_tcp(host_and_port, options, context, error);
  if (error) fail(error, binding(host_and_port));
  return descriptor;
}

std::unique_ptr<Descriptor> listen_without_throwing(std::string_view host_and_port,
                                                    const BindOptions& options,
                                                    const Context* context,
                                                    std::error_code& error) {
  return without_throwing(error,
                          [&] { return listen_tcp(host_and_port, options, context, error); });
}

}  // namespace

TcpListener TcpListener::bind(std::string_view host_and_port) {
  return bind(host_and_port, BindOptions());
}
TcpListener TcpListener::bind(std::string_view host_and_port, std::error_code& error) {
  return bind(host_and_port, BindOptions(), error);
}
TcpListener TcpListener::bind(std::string_view host_and_port, const BindOptions& options) {
  return TcpListener(listen_or_throw(host_and_port, options, nullptr));
}
TcpListener TcpListener::bind(std::string_view host_and_port, const BindOptions& options,
                              std::error_code& error) {
  return TcpListener(listen_without_throwing(host_and_port, options, nullptr, error));
}
TcpListener TcpListener::bind(std::string_view host_and_port, const BindOptions& options,
                              const Context& context) {
  return TcpListener(listen_or_throw(host_and_port, options, &context));
}
TcpListener TcpListener::bind(std::string_view host_and_port, const BindOptions& options,
                              const Context& context, std::error_code& error) {
  return TcpListener(listen_without_throwing(host_and_port, options, &context, error));
}

TcpListener TcpListener::adopt(int fd, std::error_code& error) {
  return TcpListener(
      adopt_socket(fd, AF_INET, Expected::listening, Descriptor::Kind::stream, error),
      Origin::adopted);
}
TcpListener TcpListener::adopt(int fd) {
  std::error_code error;
  TcpListener listener = adopt(fd, error);
  if (error) fail(error, adopting(fd) + " as a TCP listener");
  return listener;
}

TcpConn TcpListener::accept_within(const Context* context, std::error_code& error) {
  Accepted accepted = accept_result(context, error);
  if (!error) error = send_at_once(*accepted.descriptor);
  return error ? TcpConn() : TcpConn(std::move(accepted.descriptor), accepted.peer);
}
TcpConn TcpListener::accept() {
  std::error_code error;
  TcpConn conn = accept_within(nullptr, error);
  if (error) fail_to_accept(error);
  return conn;
}
TcpConn TcpListener::accept(std::error_code& error) { return accept_within(nullptr, error); }
TcpConn TcpListener::accept(const Context& context) {
  std::error_code error;
  TcpConn conn = accept_within(&context, error);
  if (error) fail_to_accept(error);
  return conn;
}
TcpConn TcpListener::accept(const Context& context, std::error_code& error) {
  return accept_within(&context, error);
}

}  // namespace magpie::net
