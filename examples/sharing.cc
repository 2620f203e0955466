// sharing.cc: what several goroutines need: a pool of connections, one answer for all that ask.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

namespace {

std::atomic<int> opened{0};

struct Connection {
  explicit Connection(int its) : number(its) {}
  std::string query(const std::string& text) {
    Defer count([&] { ++queries; });  // however the function is left
    if (text.empty()) throw std::invalid_argument("an empty query");
    return text + " answered";
  }
  bool is_open() const { return true; }

  int number;
  int queries = 0;
};

Connection connect(const Context&) { return Connection(++opened); }

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
    for (int i = 0; i < 100; ++i) {
      group.go([&](const Context& context) {
        answers += cache.get(context, "weather") == "weather answered";
      });
    }
    group.wait();
    std::printf("%d answers by %s\n", answers.load(),
                opened <= 4 ? "four connections or less" : "too many connections");
    return answers == 100 && opened <= 4 ? 0 : 1;
  });
}
