#include "database.h"

#include <libpq-fe.h>
#include <magpie/mutex.h>
#include <magpie/net/wait.h>
#include <magpie/pool.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace notes {
namespace {

using magpie::Context;

struct Clear {
  void operator()(PGconn* connection) const { PQfinish(connection); }
  void operator()(PGresult* result) const { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, Clear>;

// libpq without blocking: libpq says when it wants to read or write, and the goroutine waits for
// that. No thread is blocked, and the context ends every wait.
class Connection {
 public:
  Connection(const std::string& where, const Context& context)
      : handle_(PQconnectStart(where.c_str())) {
    if (handle_ == nullptr) throw std::bad_alloc();
    for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;
         next = PQconnectPoll(get())) {
      if (next == PGRES_POLLING_FAILED || PQstatus(get()) == CONNECTION_BAD) fail();
      if (next == PGRES_POLLING_READING) magpie::net::wait_readable(PQsocket(get()), context);
      if (next == PGRES_POLLING_WRITING) magpie::net::wait_writable(PQsocket(get()), context);
    }
    if (PQsetnonblocking(get(), 1) != 0) fail();
  }

  bool is_healthy() const { return PQstatus(get()) == CONNECTION_OK; }

  Result query(const Context& context, const char* text, const std::vector<std::string>& values) {
    std::vector<const char*> pointers;
    for (const std::string& value : values) pointers.push_back(value.c_str());
    if (PQsendQueryParams(get(), text, static_cast<int>(values.size()), nullptr, pointers.data(),
                          nullptr, nullptr, 0) == 0)
      fail();
    for (int left = PQflush(get()); left != 0; left = PQflush(get())) {
      if (left < 0) fail();
      magpie::net::wait_writable(PQsocket(get()), context);
    }
    Result last;
    for (;;) {
      while (PQisBusy(get()) != 0) {
        magpie::net::wait_readable(PQsocket(get()), context);
        if (PQconsumeInput(get()) == 0) fail();
      }
      Result next(PQgetResult(get()));
      if (next == nullptr) break;
      last = std::move(next);
    }
    const ExecStatusType status = PQresultStatus(last.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail();
    return last;
  }

 private:
  PGconn* get() const { return handle_.get(); }
  [[noreturn]] void fail() const {
    throw std::runtime_error("PostgreSQL: " + std::string(PQerrorMessage(get())));
  }

  std::unique_ptr<PGconn, Clear> handle_;
};

class Postgres final : public Database {
 public:
  Postgres(const std::string& where, int connections)
      : pool_(connections, [where](const Context& context) { return Connection(where, context); },
              {.is_healthy = [](Connection& connection) { return connection.is_healthy(); }}) {
    query(Context::background(),
          "CREATE TABLE IF NOT EXISTS notes (id bigserial PRIMARY KEY, text text NOT NULL)", {});
  }

  std::int64_t add(const Context& context, const std::string& text) override {
    Result result = query(context, "INSERT INTO notes (text) VALUES ($1) RETURNING id", {text});
    return std::stoll(PQgetvalue(result.get(), 0, 0));
  }

  std::optional<std::string> find(const Context& context, std::int64_t id) override {
    Result result = query(context, "SELECT text FROM notes WHERE id = $1", {std::to_string(id)});
    if (PQntuples(result.get()) == 0) return std::nullopt;
    return PQgetvalue(result.get(), 0, 0);
  }

 private:
  Result query(const Context& context, const char* text, const std::vector<std::string>& values) {
    magpie::Pool<Connection>::Lease connection = pool_.take(context);
    try {
      return connection->query(context, text, values);
    } catch (...) {  // a query may still be under way in it
      connection.discard();
      throw;
    }
  }

  magpie::Pool<Connection> pool_;
};

class Memory final : public Database {
 public:
  std::int64_t add(const Context&, const std::string& text) override {
    std::lock_guard hold(mutex_);
    notes_[++last_id_] = text;
    return last_id_;
  }
  std::optional<std::string> find(const Context&, std::int64_t id) override {
    std::lock_guard hold(mutex_);
    auto at = notes_.find(id);
    if (at == notes_.end()) return std::nullopt;
    return at->second;
  }

 private:
  magpie::Mutex mutex_;
  // guarded by mutex_
  std::map<std::int64_t, std::string> notes_;
  std::int64_t last_id_ = 0;
};

}  // namespace

std::unique_ptr<Database> open_postgres(const std::string& where, int connections) {
  return std::make_unique<Postgres>(where, connections);
}
std::unique_ptr<Database> keep_in_memory() { return std::make_unique<Memory>(); }

}  // namespace notes
