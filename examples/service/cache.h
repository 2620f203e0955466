// cache.h: notes in Redis, for a minute. A cache that fails is a cache that has nothing.
#pragma once

#include <magpie/context.h>
#include <magpie/pool.h>

#include <memory>
#include <optional>
#include <string>

struct redisContext;
struct redisReply;

namespace notes {

class Cache {
 public:
  // An empty host: the cache is always empty.
  Cache(const std::string& host, int port);

  std::optional<std::string> find(const magpie::Context& context, const std::string& key);
  void store(const magpie::Context& context, const std::string& key, const std::string& value);

 private:
  struct Free {
    void operator()(redisContext* connection) const;
    void operator()(redisReply* reply) const;
  };
  using Connection = std::unique_ptr<redisContext, Free>;
  using Reply = std::unique_ptr<redisReply, Free>;

  // Null: it failed, and the log says why.
  template <class... Args>
  Reply command(const magpie::Context& context, const char* format, Args... args);

  const bool is_on_;
  magpie::Pool<Connection> pool_;
};

}  // namespace notes
