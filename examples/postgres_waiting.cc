// postgres_waiting.cc: two thousand goroutines query PostgreSQL, and no thread waits for it.
//
// libpq can send a query without waiting for its result. The goroutine then waits for libpq's
// socket on Magpie's poller, with a context. Compare postgres.cc, where a thread waits for each
// query under way. Where to connect is libpq's own business: PGHOST, PGPORT, PGUSER, PGDATABASE.
#include <libpq-fe.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

using namespace magpie;

namespace {

struct Finish {
  void operator()(PGconn* conn) const { PQfinish(conn); }
  void operator()(PGresult* result) const { PQclear(result); }
};
using Connection = std::unique_ptr<PGconn, Finish>;
using Result = std::unique_ptr<PGresult, Finish>;

Connection connect_to_server(const Context& context) {
  Connection conn(PQconnectStart(""));
  auto next = PGRES_POLLING_WRITING;
  for (; next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING;
       next = PQconnectPoll(conn.get())) {
    if (next == PGRES_POLLING_READING) net::wait_readable(PQsocket(conn.get()), context);
    if (next == PGRES_POLLING_WRITING) net::wait_writable(PQsocket(conn.get()), context);
  }
  if (next != PGRES_POLLING_OK) throw std::runtime_error(PQerrorMessage(conn.get()));
  return conn;
}

Result query(const Context& context, PGconn* conn, const std::string& text) {
  if (PQsendQuery(conn, text.c_str()) == 0) throw std::runtime_error(PQerrorMessage(conn));
  Result last;
  for (;;) {
    while (PQisBusy(conn) != 0) {
      net::wait_readable(PQsocket(conn), context);
      if (PQconsumeInput(conn) == 0) throw std::runtime_error(PQerrorMessage(conn));
    }
    Result next(PQgetResult(conn));
    if (next == nullptr) return last;
    last = std::move(next);
  }
}

}  // namespace

int main() {
  return run([] {
    constexpr int kConnections = 20, kGoroutines = 2000;
    Pool<Connection> pool(kConnections, connect_to_server);
    std::atomic<long> sum = 0;
    TaskGroup asking;
    for (int i = 0; i < kGoroutines; ++i) {
      asking.go([&, i] {
        Pool<Connection>::Lease conn = pool.take(asking.context());
        Result result = query(asking.context(), conn->get(), "SELECT 2 * " + std::to_string(i));
        sum += std::atol(PQgetvalue(result.get(), 0, 0));
      });
    }
    asking.wait();  // throws what the first of them threw
    std::printf("%d queries, %zu connections, %d threads\n", kGoroutines, pool.idle(),
                num_threads());
    return sum == long{kGoroutines} * (kGoroutines - 1) ? 0 : 1;
  });
}
