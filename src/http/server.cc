#include <magpie/http/server.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/detail/caught.h>
#include <magpie/go.h>
#include <magpie/time.h>

#include "http/connection.h"
#include "http/server_core.h"
#include "net/error_code.h"

namespace magpie::http {

namespace {

using std::chrono::nanoseconds;

std::int64_t ns_or_never(nanoseconds time) {
  return time.count() <= 0 ? detail::kNoDeadline : time.count();
}

StateTimes times_of(const ServerOptions& options) {
  StateTimes times{};
  auto set = [&](ConnectionState state, std::int64_t ns) {
    times.ns[static_cast<std::size_t>(state)] = ns;
  };
  set(ConnectionState::busy, detail::kNoDeadline);
  set(ConnectionState::idle,
      std::min(ns_or_never(options.rest_after), ns_or_never(options.idle_timeout)));
  const std::int64_t idle = ns_or_never(options.idle_timeout);
  set(ConnectionState::dormant,
      idle == detail::kNoDeadline
          ? idle
          : std::max<std::int64_t>(idle - times.of(ConnectionState::idle), 0));
  set(ConnectionState::fresh, ns_or_never(options.header_timeout));
  set(ConnectionState::head, ns_or_never(options.header_timeout));
  set(ConnectionState::body, ns_or_never(options.body_timeout));
  set(ConnectionState::writing, ns_or_never(options.write_timeout));
  set(ConnectionState::lingering, nanoseconds(std::chrono::seconds(2)).count());
  return times;
}

// Often enough that a time-out is late by a quarter at most, and not more often than that.
nanoseconds look_every(const StateTimes& times) {
  std::int64_t shortest = detail::kNoDeadline;
  for (std::int64_t time : times.ns) {
    if (time > 0) shortest = std::min(shortest, time);
  }
  return nanoseconds(std::clamp<std::int64_t>(shortest / 4, 1'000'000, 500'000'000));
}

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
      timeouts_(std::make_shared<Timeouts>(times_of(options_), look_every(times_of(options_)))),
      addresses_(std::make_shared<AddressTable>(
          static_cast<std::size_t>(std::max(options_.max_connections_per_address, 0)), 0, 0)),
      free_connections_(std::max(options_.max_connections, 1)),
      room_(static_cast<std::size_t>(std::clamp(options_.max_connections / 64, 1, 64))) {
  exchanges_.reserve(kKeptExchanges);
}

bool ServerCore::idle_connections_go_dormant() const {
  return options_.rest_after.count() > 0 &&
         ns_or_never(options_.rest_after) < ns_or_never(options_.idle_timeout);
}

std::int64_t ServerCore::idle_time_ns() const { return ns_or_never(options_.idle_timeout); }

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
  if (started_) return;
  Handler whole = dispatch;
  for (auto one = middlewares_.rbegin(); one != middlewares_.rend(); ++one)
    whole = (*one)(std::move(whole));
  handler_ = std::move(whole);
  started_ = true;  // last: a middleware may throw, and then nothing has begun
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
        go([self = shared_from_this(), &from = *acceptor] { self->accept_all(from); });
        ++accepting_;  // if that has not thrown; its end needs the mutex
      }
    }
  }
  std::unique_lock hold(mutex_);
  changed_.wait(hold, [this] { return over_; });
}

void ServerCore::accept_all(Acceptor& acceptor) {
  accept_until_stopped(acceptor);
  accept_last(acceptor);
  acceptor.close();
  std::lock_guard hold(mutex_);
  if (--accepting_ == 0) changed_.notify_all();
}

void ServerCore::accept_until_stopped(Acceptor& acceptor) {
  constexpr auto kFirstPause = std::chrono::milliseconds(5),
                 kLongestPause = std::chrono::milliseconds(500);
  auto pause = kFirstPause;
  for (;;) {
    try {
      begin_connection(acceptor.accept());
      pause = kFirstPause;
      continue;
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::operation_canceled || error.code() == std::errc::timed_out)
        return;
    } catch (...) {
      (void)detail::caught();
    }
    // No descriptors, or no memory: silent connections have to give some back. Others wait in the
    // system's queue meanwhile.
    timeouts_->evict(room_);
    sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

// Connections that were in the system's line when the server was asked to shut down: their clients
// think that they are connected, and have sent requests.
void ServerCore::accept_last(Acceptor& acceptor) {
  constexpr int kLongestLine = 4096;  // of the system; the line may not end if it is filled again
  try {
    for (int i = 0; i < kLongestLine && !grace_is_over(); ++i) {
      std::unique_ptr<net::Stream> stream = acceptor.accept_waiting();
      if (!stream) return;
      begin_connection(std::move(stream));
    }
  } catch (...) {
    (void)detail::caught();  // no descriptors, or no memory
  }
}

// Waits for room. If the server is full, silent connections have to make some, also connections
// that become silent later. False: the server is over.
bool ServerCore::take_place() {
  constexpr auto kFullPause = std::chrono::milliseconds(20);
  while (!free_connections_.try_acquire()) {
    timeouts_->evict(room_);
    if (free_connections_.try_acquire_for(kFullPause)) return true;
    if (grace_is_over()) return false;
  }
  return true;
}

void ServerCore::begin_connection(std::unique_ptr<net::Stream> stream) {
  std::shared_ptr<CountedConnection> counted;
  if (addresses_->counts_connections()) {
    if (std::optional<AddressTable::Key> key = key_of_peer(*stream)) {
      counted = CountedConnection::make(addresses_, *key);
      if (!counted) return;  // too many of that address
    }
  }
  if (!take_place()) return;
  try {
    // Timeouts knows the connection before its goroutine is started: a shutdown that finds none
    // left has missed none.
    auto connection = std::make_unique<Connection>(*this, std::move(stream));
    go([self = shared_from_this(), connection = std::move(connection), counted]() mutable {
      connection->run();
      connection.reset();
      self->free_connections_.release();
    });
  } catch (...) {
    free_connections_.release();
    throw;
  }
}

void ServerCore::serve_connection(std::unique_ptr<net::Stream> stream) {
  start();
  // Not on the stack: if run() ends with it, others may still look at it.
  std::make_unique<Connection>(*this, std::move(stream))->run();
}

// Without this, few clients could hold all of it for as long as the minimum rate lets them: what
// has come fast earns them an hour for the rest.
bool ServerCore::take_body_memory_of_slow_bodies(std::size_t bytes) {
  constexpr std::size_t kAtOnce = 8;
  constexpr int kLooks = 50;
  constexpr auto kPause = std::chrono::milliseconds(2);
  if (timeouts_->end_slow_bodies(kAtOnce) == 0) return false;
  for (int i = 0; i < kLooks; ++i) {
    sleep_for(kPause);
    if (take_body_memory(bytes)) return true;
  }
  return false;
}

bool ServerCore::shutdown_until(detail::DeadlineNs deadline) {
  std::unique_lock hold(mutex_);
  const bool first = !std::exchange(shut_down_, true);
  if (deadline < cut_off_ns_.load(std::memory_order_relaxed))
    cut_off_ns_.store(deadline, std::memory_order_relaxed);
  timeouts_->end_grace_at(deadline);
  if (!first) {
    changed_.wait(hold, [this] { return over_; });
    hold.unlock();
    return timeouts_->count() == 0;
  }
  hold.unlock();
  timeouts_->drain();
  for (auto& acceptor : acceptors_) acceptor->stop();
  hold.lock();
  changed_.wait(hold, [this] { return accepting_ == 0; });
  hold.unlock();
  for (auto& acceptor : acceptors_) acceptor->close();  // of those that nobody has served

  bool drained = timeouts_->wait_for_grace();
  if (!drained) {
    context_.cancel();
    timeouts_->cut_off();
    drained = timeouts_->wait_until_empty(detail::deadline_after(std::chrono::seconds(1)));
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
  exchange->detach();
  std::lock_guard hold(exchanges_mutex_);
  // Does not allocate: the constructor has made room.
  if (exchanges_.size() < kKeptExchanges) exchanges_.push_back(std::move(exchange));
}

Server::Server(ServerOptions options) : core_(std::make_shared<ServerCore>(std::move(options))) {}

Server::~Server() {
  // After the end of run() its goroutines are gone, and there is nobody to wait for.
  if (procs() > 0) (void)core_->shutdown_until(detail::deadline_after(std::chrono::seconds(0)));
}

void Server::handle(std::string_view pattern, Handler handler, RouteOptions options) {
  core_->add_route(pattern, std::move(handler), options);
}
void Server::use(Middleware middleware) {
  if (!middleware) detail::throw_empty_function();
  core_->add_middleware(std::move(middleware));
}
void Server::listen(std::string_view where) {
  constexpr std::string_view kUnix = "unix:";
  if (where.starts_with(kUnix)) return listen(bind_unix(where.substr(kUnix.size())));
  listen(net::TcpListener::bind(where));
}
void Server::listen(net::TcpListener listener) {
  core_->add_acceptor(make_acceptor(std::move(listener)));
}
void Server::listen(net::UnixListener listener) {
  core_->add_acceptor(make_acceptor(std::move(listener)));
}
void Server::listen(std::string_view host_and_port, const net::TlsServerConfig& tls) {
  core_->add_acceptor(make_acceptor(net::TcpListener::bind(host_and_port), tls));
}
void Server::listen_fd(int descriptor) { core_->add_acceptor(make_acceptor(descriptor)); }
void Server::listen(std::string_view where, std::error_code& error) {
  net::with_error_code(error, [&] { listen(where); });
}
void Server::listen(std::string_view host_and_port, const net::TlsServerConfig& tls,
                    std::error_code& error) {
  net::with_error_code(error, [&] { listen(host_and_port, tls); });
}
void Server::listen_fd(int descriptor, std::error_code& error) {
  net::with_error_code(error, [&] { listen_fd(descriptor); });
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
std::size_t Server::connections() const { return core_->timeouts().count(); }

}  // namespace magpie::http
