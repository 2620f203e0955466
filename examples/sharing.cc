// sharing.cc: what several goroutines need: a pool of connections, one answer for all that ask.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

namespace {

constexpr int kCallers = 100;
std::atomic<int> queries{0};

struct Connection {
  std::string query(const std::string& text) {
    Defer count([&] { ++queries; });  // however the function is left
    if (text.empty()) throw std::invalid_argument("an empty query");
    return text + " answered";
  }
  bool is_open() const { return true; }
};

// Slow: meanwhile main and all callers but this one wait.
Connection connect(const Context& context) {
  while (stats().waiting < kCallers) sleep_for(1ms, context);
  return {};
}

// Four connections for everybody. What was idle for a minute is closed, and so is what does not
// answer any more.
class Database {
 public:
  std::string query(const Context& context, const std::string& text) {
    Pool<Connection>::Lease connection = pool_.take(context);  // waits while all four are lent
    try {
      return connection->query(text);
    } catch (...) {
      connection.discard();  // nobody gets it again
      throw;
    }
  }

 private:
  Pool<Connection> pool_{4, connect, {.idle_time = 1min, .is_healthy = &Connection::is_open}};
};

// However many ask for the same at the same time, the database is asked once.
class Cache {
 public:
  explicit Cache(Database& database) : database_(database) {}
  std::string get(const Context& context, const std::string& key) {
    return flights_.call(context, key, [&] { return database_.query(context, key); });
  }

 private:
  Database& database_;
  SingleFlight<std::string, std::string> flights_;
};

}  // namespace

int main() {
  return run([] {
    Database database;
    Cache cache(database);
    std::atomic<int> answers{0};
    TaskGroup group;
    auto ask = [&](const Context& context) {
      answers += cache.get(context, "weather") == "weather answered";
    };
    for (int i = 0; i < kCallers; ++i) group.go(ask);
    group.wait();
    std::printf("%d answers by %d query\n", +answers, +queries);
    return answers == kCallers && queries == 1 ? 0 : 1;
  });
}
