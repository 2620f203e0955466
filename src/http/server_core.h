// server_core.h: what a server's goroutines share. They hold it, so that it outlives the Server if a handler does.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <magpie/cond_var.h>
#include <magpie/context.h>
#include <magpie/http/server.h>
#include <magpie/mutex.h>
#include <magpie/semaphore.h>

#include "http/exchange.h"
#include "http/router.h"
#include "http/watch.h"

namespace magpie::http {

// Where connections come from.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  // Blocks. Throws std::system_error: errc::operation_canceled after close().
  virtual std::unique_ptr<net::Stream> accept() = 0;
  virtual void close() noexcept = 0;
  virtual net::Address local_address() const = 0;
};

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
  bool idle_connections_rest() const;
  HeadLimits head_limits() const { return {options_.max_header_bytes, options_.max_header_fields}; }
  const Context& context() const { return context_; }
  Watchman& watchman() { return *watchman_; }
  std::unique_ptr<Exchange> take_exchange(Connection& connection);
  void give_exchange(std::unique_ptr<Exchange> exchange);

 private:
  void start();
  void accept_all(Acceptor& acceptor);

  const ServerOptions options_;
  const Context context_;
  const std::shared_ptr<Watchman> watchman_;

  Router router_;
  std::vector<Middleware> middlewares_;
  Handler handler_;  // all of it: middlewares around the route's handler

  Semaphore free_connections_;

  mutable Mutex mutex_;
  CondVar changed_;
  // guarded by mutex_
  std::vector<std::unique_ptr<Acceptor>> acceptors_;  // fixed once started_
  bool started_ = false;
  bool serving_ = false;
  bool shut_down_ = false;
  bool over_ = false;  // shutdown has done what it can
  int accepting_ = 0;  // goroutines

  Mutex exchanges_mutex_;
  // guarded by exchanges_mutex_
  std::vector<std::unique_ptr<Exchange>> exchanges_;
};

}  // namespace magpie::http
