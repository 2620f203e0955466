// postgres.cc: two thousand goroutines query PostgreSQL through libpq, a library that knows nothing
// of goroutines.
//
// Its calls block the thread. blocking() says so, and other goroutines run on other threads
// meanwhile. Connections are precious, so the goroutines share a few: a channel hands them out,
// first come, first served. Where to connect is libpq's own business: PGHOST, PGPORT, PGUSER,
// PGDATABASE.
#include <libpq-fe.h>
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace magpie;

struct Finish {
  void operator()(PGconn* conn) const { PQfinish(conn); }
  void operator()(PGresult* result) const { PQclear(result); }
};
using Connection = std::unique_ptr<PGconn, Finish>;
using Result = std::unique_ptr<PGresult, Finish>;

Connection connect() {
  Connection conn(blocking([] { return PQconnectdb(""); }));
  if (PQstatus(conn.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(conn.get()));
  return conn;
}

Result query(PGconn* conn, const std::string& text) {
  Result result(blocking([&] { return PQexec(conn, text.c_str()); }));
  ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    throw std::runtime_error(PQerrorMessage(conn));
  return result;
}

int main() {
  return run([] {
    constexpr int kConnections = 20, kGoroutines = 2000, kQueriesEach = 3;
    Chan<Connection> pool(kConnections);
    TaskGroup connecting;
    for (int i = 0; i < kConnections; ++i) connecting.go([&] { pool.send(connect()); });
    connecting.wait();

    std::atomic<long> sum = 0;
    std::atomic<int> waiting_in_postgres = 0, most = 0;
    TaskGroup asking;
    for (int i = 0; i < kGoroutines; ++i) {
      asking.go([&, i] {
        for (int k = 0; k < kQueriesEach; ++k) {
          Connection conn = *pool.recv();
          int now = ++waiting_in_postgres;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          Result result =
              query(conn.get(), "SELECT " + std::to_string(i) + " * 2, pg_sleep(0.001)");
          --waiting_in_postgres;
          sum += std::atol(PQgetvalue(result.get(), 0, 0));
          pool.send(std::move(conn));
        }
      });
    }
    asking.wait();  // throws what the first of them threw

    constexpr long kExpected = long{kQueriesEach} * kGoroutines * (kGoroutines - 1);
    std::printf(
        "%d goroutines, %d connections, %d queries; up to %d at the same time on %d procs, %d "
        "threads\n",
        kGoroutines, kConnections, kGoroutines * kQueriesEach, most.load(), procs(), num_threads());
    return sum == kExpected ? 0 : 1;
  });
}
