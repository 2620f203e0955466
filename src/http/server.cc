#include <magpie/http/server.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/go.h>
#include <magpie/time.h>

#include "http/connection.h"
#include "http/server_core.h"

namespace magpie::http {

namespace {

using std::chrono::nanoseconds;

std::int64_t ns_or_never(nanoseconds time) {
  return time.count() <= 0 ? detail::kNoDeadline : time.count();
}

PhaseTimes times_of(const ServerOptions& options) {
  PhaseTimes times{};
  auto set = [&](Phase phase, std::int64_t ns) { times.ns[static_cast<std::size_t>(phase)] = ns; };
  set(Phase::busy, detail::kNoDeadline);
  set(Phase::idle, std::min(ns_or_never(options.rest_after), ns_or_never(options.idle_timeout)));
  const std::int64_t idle = ns_or_never(options.idle_timeout);
  set(Phase::resting,
      idle == detail::kNoDeadline ? idle : std::max<std::int64_t>(idle - times.of(Phase::idle), 0));
  set(Phase::fresh, ns_or_never(options.header_timeout));
  set(Phase::head, ns_or_never(options.header_timeout));
  set(Phase::body, ns_or_never(options.body_timeout));
  set(Phase::writing, ns_or_never(options.write_timeout));
  set(Phase::lingering, nanoseconds(std::chrono::seconds(2)).count());
  return times;
}

// Often enough that a time-out is late by a quarter at most, and not more often than that.
nanoseconds look_every(const PhaseTimes& times) {
  std::int64_t shortest = detail::kNoDeadline;
  for (std::int64_t time : times.ns) {
    if (time > 0) shortest = std::min(shortest, time);
  }
  return nanoseconds(std::clamp<std::int64_t>(shortest / 4, 1'000'000, 500'000'000));
}

template <class Listener>
class SocketAcceptor final : public Acceptor {
 public:
  explicit SocketAcceptor(Listener listener) : listener_(std::move(listener)) {}
  std::unique_ptr<net::Stream> accept() override {
    return std::make_unique<decltype(listener_.accept())>(listener_.accept());
  }
  void close() noexcept override { listener_.close(); }
  net::Address local_address() const override { return listener_.local_address(); }

 private:
  Listener listener_;
};

// The route's handler, or what is to be answered without one.
void dispatch(Request& request, Response& response) {
  Exchange& exchange = Exchange::of(request);
  const Match& match = exchange.in.match();
  if (int status = exchange.connection().early_status()) throw StatusError(status);
  if (match.route != nullptr) {
    match.route->handler(request, response);
  } else if (match.path_known) {
    response.status(405).header("Allow", match.allowed).send("Method Not Allowed\n");
  } else {
    throw StatusError(404);
  }
}

}  // namespace

ServerCore::ServerCore(ServerOptions options)
    : options_(std::move(options)),
      context_(Context::background().with_cancel()),
      watchman_(std::make_shared<Watchman>(times_of(options_), look_every(times_of(options_)))),
      free_connections_(std::max(options_.max_connections, 1)) {}

bool ServerCore::idle_connections_rest() const {
  return options_.rest_after.count() > 0 &&
         ns_or_never(options_.rest_after) < ns_or_never(options_.idle_timeout);
}

void ServerCore::need_setup(const char* what) const {
  std::lock_guard hold(mutex_);
  if (started_)
    throw std::logic_error(std::string("magpie: Server::") + what + "() after it began to serve");
}

void ServerCore::add_route(std::string_view pattern, Handler handler, const RouteOptions& options) {
  need_setup("handle");
  router_.add(pattern, std::move(handler), options.max_body_bytes);
}

void ServerCore::add_middleware(Middleware middleware) {
  need_setup("use");
  middlewares_.push_back(std::move(middleware));
}

void ServerCore::add_acceptor(std::unique_ptr<Acceptor> acceptor) {
  std::lock_guard hold(mutex_);
  if (serving_) throw std::logic_error("magpie: Server::listen() after serve()");
  acceptors_.push_back(std::move(acceptor));
}

net::Address ServerCore::local_address() const {
  std::lock_guard hold(mutex_);
  if (acceptors_.empty()) throw std::logic_error("magpie: Server::local_address() before listen()");
  return acceptors_.front()->local_address();
}

void ServerCore::start() {
  std::lock_guard hold(mutex_);
  if (std::exchange(started_, true)) return;
  handler_ = dispatch;
  for (auto one = middlewares_.rbegin(); one != middlewares_.rend(); ++one)
    handler_ = (*one)(std::move(handler_));
}

void ServerCore::serve() {
  start();
  {
    std::lock_guard hold(mutex_);
    if (acceptors_.empty()) throw std::logic_error("magpie: Server::serve() without listen()");
    if (std::exchange(serving_, true))
      throw std::logic_error("magpie: Server::serve() was called before");
    if (!shut_down_) {
      for (auto& acceptor : acceptors_) {
        ++accepting_;
        go([self = shared_from_this(), &from = *acceptor] { self->accept_all(from); });
      }
    }
  }
  std::unique_lock hold(mutex_);
  changed_.wait(hold, [this] { return over_; });
}

void ServerCore::accept_all(Acceptor& acceptor) {
  constexpr auto kFirstPause = std::chrono::milliseconds(5),
                 kLongestPause = std::chrono::milliseconds(500);
  constexpr auto kFullPause = std::chrono::milliseconds(20);
  auto pause = kFirstPause;
  const std::size_t room = static_cast<std::size_t>(std::max(options_.max_connections / 64, 1));
  for (;;) {
    // Full: idle connections have to make room, also those that become idle later.
    while (!free_connections_.try_acquire()) {
      watchman_->end_idle(room);
      if (free_connections_.try_acquire_for(kFullPause)) break;
    }
    if (watchman_->draining()) break;
    try {
      std::unique_ptr<net::Stream> stream = acceptor.accept();
      go([self = shared_from_this(), stream = std::move(stream)]() mutable {
        self->serve_connection(std::move(stream));
        self->free_connections_.release();
      });
      pause = kFirstPause;
      continue;
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::operation_canceled) break;
      // No descriptors, or no memory. Connections wait in the system's queue until there are some again.
      watchman_->end_idle(room);
    } catch (const std::bad_alloc&) {
    }
    free_connections_.release();
    sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
  std::lock_guard hold(mutex_);
  if (--accepting_ == 0) changed_.notify_all();
}

void ServerCore::serve_connection(std::unique_ptr<net::Stream> stream) {
  start();
  // Not on the stack: if run() ends with it, others may still look at it.
  std::make_unique<Connection>(*this, std::move(stream))->run();
}

bool ServerCore::shutdown_until(detail::DeadlineNs deadline) {
  std::unique_lock hold(mutex_);
  const bool first = !std::exchange(shut_down_, true);
  if (!first) {
    changed_.wait(hold, [this] { return over_; });
    hold.unlock();
    return watchman_->count() == 0;
  }
  hold.unlock();
  watchman_->drain();
  for (auto& acceptor : acceptors_) acceptor->close();
  // Whoever waits for room looks again.
  free_connections_.release(static_cast<std::int64_t>(acceptors_.size()));
  hold.lock();
  changed_.wait(hold, [this] { return accepting_ == 0; });
  hold.unlock();

  bool drained = watchman_->wait_until_empty(deadline);
  if (!drained) {
    context_.cancel();
    watchman_->cut_off();
    drained = watchman_->wait_until_empty(detail::deadline_after(std::chrono::seconds(1)));
  }
  hold.lock();
  over_ = true;
  changed_.notify_all();
  return drained;
}

std::unique_ptr<Exchange> ServerCore::take_exchange(Connection& connection) {
  {
    std::lock_guard hold(exchanges_mutex_);
    if (!exchanges_.empty()) {
      std::unique_ptr<Exchange> exchange = std::move(exchanges_.back());
      exchanges_.pop_back();
      exchange->attach(connection);
      return exchange;
    }
  }
  return std::make_unique<Exchange>(connection);
}

void ServerCore::give_exchange(std::unique_ptr<Exchange> exchange) {
  constexpr std::size_t kKept = 64;
  exchange->detach();
  std::lock_guard hold(exchanges_mutex_);
  if (exchanges_.size() < kKept) exchanges_.push_back(std::move(exchange));
}

Server::Server(ServerOptions options) : core_(std::make_shared<ServerCore>(std::move(options))) {}

Server::~Server() {
  // After the end of run() its goroutines are gone, and there is nobody to wait for.
  if (procs() > 0) (void)core_->shutdown_until(detail::deadline_after(std::chrono::seconds(0)));
}

void Server::handle(std::string_view pattern, Handler handler, RouteOptions options) {
  core_->add_route(pattern, std::move(handler), options);
}
void Server::use(Middleware middleware) { core_->add_middleware(std::move(middleware)); }
void Server::listen(std::string_view host_and_port) {
  listen(net::TcpListener::bind(host_and_port));
}
void Server::listen(net::TcpListener listener) {
  core_->add_acceptor(std::make_unique<SocketAcceptor<net::TcpListener>>(std::move(listener)));
}
void Server::listen(std::string_view host_and_port, const net::TlsServerConfig& tls) {
  core_->add_acceptor(std::make_unique<SocketAcceptor<net::TlsListener>>(
      net::TlsListener::bind(host_and_port, tls)));
}
net::Address Server::local_address() const { return core_->local_address(); }
void Server::serve() {
  auto core = core_;  // lives on if the Server is destroyed as soon as shutdown() has returned
  core->serve();
}
void Server::serve_connection(std::unique_ptr<net::Stream> stream) {
  auto core = core_;
  core->serve_connection(std::move(stream));
}
bool Server::shutdown_until(detail::DeadlineNs deadline) {
  auto core = core_;
  return core->shutdown_until(deadline);
}
std::size_t Server::connections() const { return core_->watchman().count(); }

}  // namespace magpie::http
