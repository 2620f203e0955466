// resolver.cc: a question to the name servers, asked by the goroutine that waits for the answer.
//
// c-ares only ever works when it is called, and never blocks then. Each question has a channel of
// its own, so none is used by two at a time. Its sockets are gathered in an epoll instance, which
// is itself a descriptor that can be waited for.
#include <magpie/net/dns.h>

#include <ares.h>
#include <netdb.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <magpie/blocking.h>
#include <magpie/context.h>

#include "net/errors.h"
#include "net/wait_for.h"

namespace magpie::net {
namespace {

class DnsErrors final : public std::error_category {
 public:
  const char* name() const noexcept override { return "dns"; }
  std::string message(int code) const override { return ares_strerror(code); }
  // So that error == std::errc::timed_out holds, whether c-ares or the caller noticed it.
  std::error_condition default_error_condition(int code) const noexcept override {
    switch (code) {
      case ARES_ETIMEOUT:
        return std::errc::timed_out;
      case ARES_ECONNREFUSED:
        return std::errc::connection_refused;
      case ARES_ENOMEM:
        return std::errc::not_enough_memory;
      case ARES_ECANCELLED:
        return std::errc::operation_canceled;
      default:
        return {code, *this};
    }
  }
};

std::error_code code_of_ares(int status) {
  if (status == ARES_SUCCESS) return {};
  return {status, dns_errors()};
}

[[gnu::noinline]] int make_epoll() { return epoll_create1(EPOLL_CLOEXEC); }

class Question {
 public:
  explicit Question(const DnsResolver::Options& options) : sockets_(make_epoll()) {
    static const int ready = ares_library_init(ARES_LIB_INIT_ALL);
    if (sockets_ < 0) {
      error_ = code_of_errno();
    } else if (ready != ARES_SUCCESS) {
      error_ = code_of_ares(ready);
    } else {
      // It reads files.
      error_ = code_of_ares(blocking([&] { return open_channel(options); }));
    }
  }
  ~Question() {
    if (channel_ != nullptr) ares_destroy(channel_);  // calls on_answer()
    if (sockets_ >= 0) close(sockets_);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  std::vector<Address> ask(const std::string& host, detail::DeadlineNs deadline,
                           const Context* context, std::error_code& error) {
    if (!error_) {
      ares_addrinfo_hints hints{};
      hints.ai_family = AF_UNSPEC;
      hints.ai_socktype = SOCK_STREAM;  // else each address comes several times
      ares_getaddrinfo(channel_, host.c_str(), nullptr, &hints, on_answer, this);
      while (!is_answered_ && !error_) wait(deadline, context);
    }
    error = error_;
    return error ? std::vector<Address>() : std::move(addresses_);
  }

 private:
  int open_channel(const DnsResolver::Options& options) {
    ares_options wanted{};
    wanted.sock_state_cb = on_socket;
    wanted.sock_state_cb_data = this;
    wanted.timeout = static_cast<int>(options.timeout.count());
    wanted.tries = options.tries;
    int status = ares_init_options(&channel_, &wanted,
                                   ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
    if (status != ARES_SUCCESS) channel_ = nullptr;
    if (status == ARES_SUCCESS && !options.servers.empty())
      status = ares_set_servers_ports_csv(channel_, options.servers.c_str());
    return status;
  }

  // Until something happens to a socket, or c-ares wants to ask again.
  void wait(detail::DeadlineNs deadline, const Context* context) {
    timeval time;
    detail::DeadlineNs again = detail::kNoDeadline;
    if (ares_timeout(channel_, nullptr, &time) != nullptr)
      again = detail::steady_now_ns() + time.tv_sec * 1'000'000'000LL + time.tv_usec * 1'000LL;
    std::error_code error = wait_anywhere(sockets_, POLLIN, std::min(deadline, again), context);
    if (context != nullptr && context->cancelled()) {
      error_ = context->err();
    } else if (!error) {
      process_sockets();
    } else if (error != std::errc::timed_out || deadline <= detail::steady_now_ns()) {
      error_ = error;
    } else {
      ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    }
  }

  // Not inlined: c-ares looks at errno.
  [[gnu::noinline]] void process_sockets() {
    epoll_event events[8];
    int count = epoll_wait(sockets_, events, 8, 0);
    for (int i = 0; i < count; ++i) {
      bool writable = (events[i].events & EPOLLOUT) != 0;
      bool readable = (events[i].events & ~static_cast<unsigned>(EPOLLOUT)) != 0;
      int fd = events[i].data.fd;
      ares_process_fd(channel_, readable ? fd : ARES_SOCKET_BAD, writable ? fd : ARES_SOCKET_BAD);
    }
  }

  static void on_socket(void* self, ares_socket_t fd, int readable, int writable) {
    int sockets = static_cast<Question*>(self)->sockets_;
    if (readable == 0 && writable == 0) {
      epoll_ctl(sockets, EPOLL_CTL_DEL, fd, nullptr);
      return;
    }
    epoll_event event{};
    event.events = (readable != 0 ? EPOLLIN : 0u) | (writable != 0 ? EPOLLOUT : 0u);
    event.data.fd = fd;
    if (epoll_ctl(sockets, EPOLL_CTL_MOD, fd, &event) != 0)
      epoll_ctl(sockets, EPOLL_CTL_ADD, fd, &event);
  }

  static void on_answer(void* argument, int status, int, ares_addrinfo* answer) {
    auto& self = *static_cast<Question*>(argument);
    self.is_answered_ = true;
    std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)> all(answer, &ares_freeaddrinfo);
    if (status != ARES_SUCCESS) {
      if (!self.error_) self.error_ = code_of_ares(status);
      return;
    }
    for (const ares_addrinfo_node* at = answer->nodes; at != nullptr; at = at->ai_next) {
      if (at->ai_family == AF_INET || at->ai_family == AF_INET6)
        self.addresses_.push_back(Address::from(at->ai_addr, at->ai_addrlen).with_port(0));
    }
    if (self.addresses_.empty()) self.error_ = code_of_ares(ARES_ENODATA);
  }

  const int sockets_;  // the epoll instance
  ares_channel channel_ = nullptr;
  bool is_answered_ = false;
  std::error_code error_;
  std::vector<Address> addresses_;
};

}  // namespace

const std::error_category& dns_errors() noexcept {
  static const DnsErrors category;
  return category;
}

std::vector<Address> DnsResolver::look_up(const std::string& host, TimePoint deadline,
                                          const Context* context, std::error_code& error) {
  // In memory of its own: c-ares keeps its address.
  return std::make_unique<Question>(options_)->ask(host, detail::deadline_at(deadline), context,
                                                   error);
}

}  // namespace magpie::net
