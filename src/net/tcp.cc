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
#include <magpie/go.h>
#include <magpie/select.h>
#include <magpie/time.h>

#include "base/clock.h"
#include "net/host_port.h"
#include "net/socket.h"

namespace magpie::net {
namespace {

using io::Descriptor;
using Socket = std::shared_ptr<Descriptor>;

constexpr std::chrono::milliseconds kHeadStart(250);

std::unique_ptr<Descriptor> open_tcp(const Address& address) {
  return open_socket(address.family(), SOCK_STREAM, Descriptor::Kind::stream);
}

// Small messages are sent at once.
void send_at_once(const Descriptor& descriptor) {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
}

// Addresses of the two families in turn, beginning with the first one's: if one family does not work at all, the second
// attempt finds out.
std::vector<Address> in_turn(const std::vector<Address>& all) {
  std::vector<Address> mixed, others;
  for (const Address& address : all)
    (address.family() == all.front().family() ? mixed : others).push_back(address);
  for (std::size_t i = 0; i < others.size(); ++i)
    mixed.insert(mixed.begin() + static_cast<std::ptrdiff_t>(std::min(2 * i + 1, mixed.size())),
                 others[i]);
  return mixed;
}

std::unique_ptr<Descriptor> connect_one(const Address& address, detail::DeadlineNs deadline) {
  std::unique_ptr<Descriptor> descriptor = open_tcp(address);
  descriptor->set_deadline(descriptor->writer(), deadline);
  connect_to(*descriptor, address);
  descriptor->set_deadline(descriptor->writer(), detail::kNoDeadline);
  return descriptor;
}

// Several addresses race, each with a head start over the next; a failure starts the next at once.
class Race {
 public:
  Race(std::vector<Address> addresses, detail::DeadlineNs deadline)
      : addresses_(std::move(addresses)), deadline_(deadline), finished_(addresses_.size()) {}

  std::unique_ptr<Descriptor> run() {
    std::size_t running = 0, next = 0;
    std::exception_ptr first_error;
    while (next < addresses_.size() || running != 0) {
      if (next < addresses_.size()) {
        start(addresses_[next++]);
        ++running;
      }
      std::optional<Result> result = wait(next < addresses_.size());
      if (!result) continue;  // the head start is over
      --running;
      if (result->descriptor != nullptr) return std::move(result->descriptor);
      if (first_error == nullptr) first_error = result->error;
    }
    std::rethrow_exception(first_error);
  }

 private:
  struct Result {
    std::unique_ptr<Descriptor> descriptor;
    std::exception_ptr error;
  };

  // Losers of the race connect, or fail, later: their channel has room, and dies with the last of them.
  void start(const Address& address) {
    go([address, deadline = deadline_, finished = finished_]() mutable {
      Result result;
      try {
        result.descriptor = connect_one(address, deadline);
      } catch (...) {
        result.error = std::current_exception();
      }
      finished.send(std::move(result));
    });
  }

  std::optional<Result> wait(bool others_wait) {
    if (!others_wait) return finished_.recv();
    std::optional<Result> got;
    select(on_recv(finished_, [&](std::optional<Result> result) { got = std::move(result); }),
           on_timeout(kHeadStart, [] {}));
    return got;
  }

  const std::vector<Address> addresses_;
  const detail::DeadlineNs deadline_;
  Chan<Result> finished_;
};

}  // namespace

TcpConn TcpConn::connect(std::string_view host_and_port) {
  return connect_until(host_and_port, detail::kNoDeadline);
}

TcpConn TcpConn::connect_until(std::string_view host_and_port, detail::DeadlineNs deadline) {
  HostPort parts = split_host_port(host_and_port);
  std::vector<Address> addresses = resolve(parts.host.empty() ? "localhost" : parts.host);
  for (Address& address : addresses) address = address.with_port(parts.port);
  std::unique_ptr<Descriptor> descriptor = addresses.size() == 1
                                               ? connect_one(addresses.front(), deadline)
                                               : Race(in_turn(addresses), deadline).run();
  send_at_once(*descriptor);
  return TcpConn(std::move(descriptor));
}

TcpListener TcpListener::bind(std::string_view host_and_port) {
  Address address = address_to_bind(host_and_port);
  std::unique_ptr<Descriptor> descriptor = open_tcp(address);
  set_option(*descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  // ":80" means IPv4 too, whatever the system's default is.
  if (address.family() == AF_INET6 && host_and_port.front() == ':')
    set_option(*descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  bind_to(*descriptor, address);
  TcpListener listener(std::move(descriptor));
  listener.listen();
  return listener;
}

TcpConn TcpListener::accept() {
  std::unique_ptr<Descriptor> descriptor = accept_descriptor();
  send_at_once(*descriptor);
  return TcpConn(std::move(descriptor));
}

}  // namespace magpie::net
