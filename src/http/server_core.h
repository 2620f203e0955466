// server_core.h: what a server's goroutines share. They hold it, so that it outlives the Server if
// a handler does.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <magpie/cond_var.h>
#include <magpie/context.h>
#include <magpie/http/server.h>
#include <magpie/mutex.h>
#include <magpie/semaphore.h>

#include "http/acceptor.h"
#include "http/address_table.h"
#include "http/exchange.h"
#include "http/router.h"
#include "http/timeouts.h"

namespace magpie::http {

class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  explicit ServerCore(ServerOptions options);

  // ---- before the first connection
  void need_setup(const char* what) const;
  void add_route(std::string_view pattern, Handler handler, const RouteOptions& options);
  void add_middleware(Middleware middleware);
  void add_acceptor(std::unique_ptr<Acceptor> acceptor);
  net::Address local_address() const;

  // ---- the server
  void serve();
  void serve_connection(std::unique_ptr<net::Stream> stream);
  bool shutdown_until(detail::DeadlineNs deadline);

  // ---- for connections
  const ServerOptions& options() const { return options_; }
  const Router& router() const { return router_; }
  const Handler& handler() const { return handler_; }
  bool idle_connections_go_dormant() const;
  HeadLimits head_limits() const { return {options_.max_header_bytes, options_.max_header_fields}; }
  std::int64_t body_time_ns() const { return timeouts_->time_of(ConnectionState::body); }
  std::int64_t idle_time_ns() const;  // between requests, with and without buffers
  std::int64_t write_time_ns() const { return timeouts_->time_of(ConnectionState::writing); }
  // Takes from what all bodies together may use. False: less than that is left.
  bool take_body_memory(std::size_t bytes) {
    const std::uint64_t before = body_memory_.fetch_add(bytes, std::memory_order_relaxed);
    if (before + bytes <= options_.max_body_memory) return true;
    release_body_memory(bytes);
    return false;
  }
  // The same when too little is left: ends bodies that come slowly, and waits a moment for what
  // they give back. Blocks.
  bool take_body_memory_of_slow_bodies(std::size_t bytes);
  void release_body_memory(std::size_t bytes) {
    body_memory_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  const Context& context() const { return context_; }
  Timeouts& timeouts() { return *timeouts_; }
  std::unique_ptr<Exchange> take_exchange(Connection& connection);
  void give_exchange(std::unique_ptr<Exchange> exchange);

 private:
  void start();
  void accept_all(Acceptor& acceptor);
  void accept_until_stopped(Acceptor& acceptor);
  void accept_last(Acceptor& acceptor);
  void begin_connection(std::unique_ptr<net::Stream> stream);
  bool take_place();
  // Asked to shut down, and the grace is over.
  bool grace_is_over() const {
    return cut_off_ns_.load(std::memory_order_relaxed) <= detail::steady_now_ns();
  }

  const ServerOptions options_;
  const Context context_;
  const std::shared_ptr<Timeouts> timeouts_;

  Router router_;
  std::vector<Middleware> middlewares_;
  Handler handler_;  // all of it: middlewares around the route's handler

  const std::shared_ptr<AddressTable> addresses_;
  Semaphore free_connections_;
  // How many connections are asked to go when there is no room.
  const std::size_t room_;
  // When the grace of a shutdown ends; never, as long as nobody has asked for one. Written under
  // mutex_. atomic, a hint: a late reader looks again soon
  std::atomic<detail::DeadlineNs> cut_off_ns_{detail::kNoDeadline};

  mutable Mutex mutex_;
  CondVar changed_;
  // guarded by mutex_
  std::vector<std::unique_ptr<Acceptor>> acceptors_;  // fixed once started_
  bool started_ = false;
  bool serving_ = false;
  bool shut_down_ = false;
  bool over_ = false;  // shutdown has done what it can
  int accepting_ = 0;  // goroutines

  // atomic, a count: relaxed
  std::atomic<std::uint64_t> body_memory_{0};

  static constexpr std::size_t kKeptExchanges = 64;
  Mutex exchanges_mutex_;
  // guarded by exchanges_mutex_
  std::vector<std::unique_ptr<Exchange>> exchanges_;
};

}  // namespace magpie::http
