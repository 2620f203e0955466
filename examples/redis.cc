// redis.cc: two thousand goroutines use Redis through hiredis, which blocks.
//
// A Pool shares twenty connections among them; blocking() lets other goroutines run while one
// waits for the server. REDIS_PORT says where it listens on loopback.
#include <hiredis/hiredis.h>
#include <magpie/magpie.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

using namespace magpie;

namespace {

struct Free {
  void operator()(redisContext* connection) const { redisFree(connection); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Connection = std::unique_ptr<redisContext, Free>;
using Reply = std::unique_ptr<redisReply, Free>;

Connection connect(int port) {
  Connection made(blocking([&] { return redisConnect("127.0.0.1", port); }));
  if (made == nullptr || made->err != 0)
    throw std::runtime_error(made != nullptr ? made->errstr : "out of memory");
  return made;
}

template <class... Args>
Reply command(redisContext* connection, const char* format, Args... args) {
  Reply reply(blocking(
      [&] { return static_cast<redisReply*>(redisCommand(connection, format, args...)); }));
  if (reply == nullptr) throw std::runtime_error(connection->errstr);
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(reply->str);
  return reply;
}

}  // namespace

int main() {
  const char* port = std::getenv("REDIS_PORT");
  return run([&] {
    constexpr int kConnections = 20, kGoroutines = 2000, kCommandsEach = 3;
    Pool<Connection> pool(kConnections, [&] { return connect(port ? std::atoi(port) : 6379); });
    (void)command(pool.take()->get(), "DEL sum");
    TaskGroup adding;
    for (int i = 0; i < kGoroutines; ++i) {
      adding.go([&, i] {
        for (int k = 0; k < kCommandsEach; ++k) {
          Pool<Connection>::Lease connection = pool.take();
          (void)command(connection->get(), "INCRBY sum %d", i);
        }
      });
    }
    adding.wait();  // throws what the first of them threw
    const Reply sum = command(pool.take()->get(), "GET sum");
    std::printf("sum %s, %zu connections, %d threads\n", sum->str, pool.idle(), num_threads());
    constexpr long kExpected = long{kCommandsEach} * kGoroutines * (kGoroutines - 1) / 2;
    return std::atol(sum->str) == kExpected && pool.idle() <= kConnections ? 0 : 1;
  });
}
