// echo_server.cc: one goroutine for each connection, plain blocking reads and writes.
//
// A server that sends back whatever it gets, and clients that talk to it, all in one program.
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <cstdio>
#include <string>

using namespace magpie;

void serve(net::TcpConn conn) {
  std::byte buffer[4096];
  while (std::size_t count = conn.read(buffer)) conn.write(std::span(buffer, count));
}

bool talk(const std::string& address, int client, int messages) {
  net::TcpConn conn = net::TcpConn::connect(address);
  for (int i = 0; i < messages; ++i) {
    std::string message = "client " + std::to_string(client) + ", message " + std::to_string(i);
    conn.write(message);
    std::string answer(message.size(), '\0');
    conn.read_exact(std::as_writable_bytes(std::span(answer)));
    if (answer != message) return false;
  }
  return true;
}

int main() {
  return run([] {
    constexpr int kClients = 100, kMessages = 100;
    net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
    std::string address = listener.local_address().to_string();
    WaitGroup server, clients;
    server.go([&] {
      try {
        for (;;) go([conn = listener.accept()]() mutable { serve(std::move(conn)); });
      } catch (const std::system_error& error) {
        if (error.code() != std::errc::operation_canceled) throw;  // close() ends it
      }
    });
    std::atomic<int> well = 0;
    for (int i = 0; i < kClients; ++i) clients.go([&, i] { well += talk(address, i, kMessages); });
    clients.wait();
    listener.close();
    server.wait();
    std::printf("%d of %d clients got all their %d answers\n", well.load(), kClients, kMessages);
    return well == kClients ? 0 : 1;
  });
}
