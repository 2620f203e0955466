#include "cache.h"

#include <hiredis/hiredis.h>
#include <magpie/blocking.h>

#include <stdexcept>

#include "log.h"

namespace notes {
namespace {

constexpr int kConnections = 16;
constexpr timeval kTimeout{.tv_sec = 1, .tv_usec = 0};

}  // namespace

void Cache::Free::operator()(redisContext* connection) const { redisFree(connection); }
void Cache::Free::operator()(redisReply* reply) const { freeReplyObject(reply); }

// hiredis blocks the thread, for a second at most. blocking() tells the runtime: other goroutines
// go on on other threads. There are never more such threads than connections.
Cache::Cache(const std::string& host, int port)
    : is_on_(!host.empty()), pool_(kConnections, [host, port] {
        Connection made(magpie::blocking(
            [&] { return redisConnectWithTimeout(host.c_str(), port, kTimeout); }));
        if (made == nullptr || made->err != 0 || redisSetTimeout(made.get(), kTimeout) != REDIS_OK)
          throw std::runtime_error(made != nullptr ? made->errstr : "out of memory");
        return made;
      }) {}

template <class... Args>
Cache::Reply Cache::command(const magpie::Context& context, const char* format, Args... args) {
  if (!is_on_) return nullptr;
  try {
    magpie::Pool<Connection>::Lease lease = pool_.take(context);
    redisContext* connection = lease->get();
    Reply reply(magpie::blocking(
        [&] { return static_cast<redisReply*>(redisCommand(connection, format, args...)); }));
    if (reply == nullptr || reply->type == REDIS_REPLY_ERROR) {
      log_warning("redis", {{"error", reply == nullptr ? connection->errstr : reply->str}});
      if (reply == nullptr) lease.discard();
      return nullptr;
    }
    return reply;
  } catch (const std::exception& error) {
    log_warning("redis", {{"error", error.what()}});
    return nullptr;
  }
}

std::optional<std::string> Cache::find(const magpie::Context& context, const std::string& key) {
  Reply reply = command(context, "GET %b", key.data(), key.size());
  if (reply == nullptr || reply->type != REDIS_REPLY_STRING) return std::nullopt;
  return std::string(reply->str, static_cast<std::size_t>(reply->len));
}

void Cache::store(const magpie::Context& context, const std::string& key,
                  const std::string& value) {
  command(context, "SET %b %b EX 60", key.data(), key.size(), value.data(), value.size());
}

}  // namespace notes
