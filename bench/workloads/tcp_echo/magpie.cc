// tcp_echo: 64 connections over loopback, each with a goroutine that sends 64 bytes and waits for
// them, and one that sends them back, all in one process. The results are wall time and CPU time
// per round trip.
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <array>

#include "measure.h"

namespace {

using magpie::net::TcpConn;
using magpie::net::TcpListener;

constexpr std::size_t kBytes = 64;

void echo(TcpConn conn) {
  std::array<std::byte, kBytes> buffer;
  while (std::size_t count = conn.read(buffer)) conn.write(std::span(buffer).first(count));
}

void talk(TcpConn& conn, long rounds) {
  std::array<std::byte, kBytes> buffer{};
  for (long i = 0; i < rounds; ++i) {
    conn.write(buffer);
    conn.read_exact(buffer);
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  long connections = args.number("connections", 64);
  long rounds = args.number("rounds", 5'000);

  magpie::run(magpie::Options{.procs = procs}, [&] {
    TcpListener listener = TcpListener::bind("127.0.0.1:0");
    std::string address = listener.local_address().to_string();
    std::vector<TcpConn> clients;
    magpie::WaitGroup servers;
    for (long i = 0; i < connections; ++i) {
      clients.push_back(TcpConn::connect(address));
      servers.go([conn = listener.accept()]() mutable { echo(std::move(conn)); });
    }
    auto all = [&](long count) {
      magpie::WaitGroup talking;
      for (TcpConn& conn : clients) talking.go([&conn, count] { talk(conn, count); });
      talking.wait();
    };
    all(rounds / 10 + 1);  // warm
    double cpu_before = bench::cpu_ns();
    double wall = bench::time_ns([&] { all(rounds); });
    double cpu = bench::cpu_ns() - cpu_before;
    double trips = static_cast<double>(connections * rounds);
    bench::report("ns_per_op", wall / trips);
    bench::report("cpu_ns_per_op", cpu / trips);
    clients.clear();
    servers.wait();
  });
}
