// tcp_echo: 64 connections over loopback, each with a goroutine that sends 64 bytes and waits for
// them, and one that sends them back, all in one process. The results are wall time and CPU time
// per round trip. The cold figure has a tenth of the rounds, and contains the connecting.
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "measure.h"

namespace {

using magpie::net::TcpConn;
using magpie::net::TcpListener;

constexpr std::size_t kBytes = 64;

void echo(TcpConn conn) {
  std::array<std::byte, kBytes> buffer;
  while (std::size_t count = conn.read(buffer)) conn.write(std::span(buffer).first(count));
}

// Stores how long each round trip took.
void talk(TcpConn& conn, std::span<std::int64_t> took_ns) {
  std::array<std::byte, kBytes> buffer{};
  for (std::int64_t& took : took_ns) {
    std::int64_t start = bench::now_ns();
    conn.write(buffer);
    conn.read_exact(buffer);
    took = bench::now_ns() - start;
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long connections = args.number("connections", 64);
  long rounds = args.number("rounds", 5'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    std::int64_t start = bench::now_ns();
    TcpListener listener = TcpListener::bind("127.0.0.1:0");
    std::string address = listener.local_address().to_string();
    std::vector<TcpConn> clients;
    magpie::WaitGroup servers;
    for (long i = 0; i < connections; ++i) {
      clients.push_back(TcpConn::connect(address));
      servers.go([conn = listener.accept()]() mutable { echo(std::move(conn)); });
    }
    std::vector<std::int64_t> took_ns(static_cast<std::size_t>(connections * rounds));
    auto all = [&](long count) {
      magpie::WaitGroup talking;
      auto each = static_cast<std::size_t>(count);
      std::span<std::int64_t> left = took_ns;
      for (TcpConn& conn : clients) {
        talking.go([&conn, mine = left.first(each)] { talk(conn, mine); });
        left = left.subspan(each);
      }
      talking.wait();
    };
    long few = rounds / 10 + 1;
    all(few);
    auto first = static_cast<double>(bench::now_ns() - start);
    double cpu_before = bench::cpu_ns();
    double wall = bench::time_ns([&] { all(rounds); });
    double cpu = bench::cpu_ns() - cpu_before;
    double trips = static_cast<double>(connections * rounds);
    bench::report("first_ns_per_op", first / static_cast<double>(connections * few));
    bench::report("ns_per_op", wall / trips);
    bench::report("cpu_ns_per_op", cpu / trips);
    auto p99 = took_ns.begin() + static_cast<std::ptrdiff_t>(took_ns.size() * 99 / 100);
    std::nth_element(took_ns.begin(), p99, took_ns.end());
    bench::report("p99_us", static_cast<double>(*p99) / 1e3);
    clients.clear();
    servers.wait();
  });
}
