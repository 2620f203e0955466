// client_pool.h: connections that wait for a next request, by the server they lead to. The last one
// used is the first to be used again, so that the others grow old and are closed.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <magpie/mutex.h>
#include <magpie/net/stream.h>
#include <magpie/time.h>

namespace magpie::http {

class ClientPool : public std::enable_shared_from_this<ClientPool> {
 public:
  ClientPool(std::size_t per_host, std::chrono::nanoseconds idle_time)
      : per_host_(per_host), idle_time_(idle_time) {}
  ~ClientPool();

  // A connection that seems to be alive, or null.
  std::unique_ptr<net::Stream> take(const std::string& key);
  void give(const std::string& key, std::unique_ptr<net::Stream> stream);
  std::size_t size() const;
  void clear();

 private:
  struct IdleConnection {
    std::unique_ptr<net::Stream> stream;
    std::int64_t since_ns;
  };
  void close_old();
  void close_old_later_locked();

  const std::size_t per_host_;
  const std::chrono::nanoseconds idle_time_;

  mutable Mutex mutex_;
  // guarded by mutex_
  std::map<std::string, std::vector<IdleConnection>, std::less<>> idle_;  // the oldest first
  bool timer_runs_ = false;
  std::optional<Timer> timer_;  // the last one
};

}  // namespace magpie::http
