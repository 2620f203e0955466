// asio.cc: goroutines wait for operations of Boost.Asio; libraries on top of it work alike.
//
// magpie::use_goroutine is a completion token: the call returns what a handler would be given.
#include <magpie/asio.h>
#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <cstdio>
#include <string>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace magpie;

namespace {

void echo(tcp::socket socket) {
  std::array<char, 256> buffer;
  for (;;) {
    boost::system::error_code error;
    std::size_t n = socket.async_read_some(asio::buffer(buffer), use_goroutine[error]);
    if (error) return;  // the client has gone
    asio::async_write(socket, asio::buffer(buffer.data(), n), use_goroutine);
  }
}

bool talk(asio::io_context& io, const tcp::endpoint& server, std::string text) {
  tcp::socket socket(io);
  socket.async_connect(server, use_goroutine);  // throws std::system_error
  asio::async_write(socket, asio::buffer(text), use_goroutine);
  std::string answer(text.size(), ' ');
  asio::async_read(socket, asio::buffer(answer), use_goroutine);
  return answer == text;
}

}  // namespace

int main() {
  return run([] {
    constexpr int kClients = 2000, kAtATime = 100;
    asio::io_context io;
    AsioRunner runner(io);  // a thread for the io_context
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    const tcp::endpoint server = acceptor.local_endpoint();
    std::atomic<int> right = 0;
    Semaphore places(kAtATime);
    TaskGroup all;
    all.go([&] {
      for (int i = 0; i < kClients; ++i)
        all.go(
            [socket = acceptor.async_accept(use_goroutine)]() mutable { echo(std::move(socket)); });
    });
    for (int i = 0; i < kClients; ++i) {
      all.go([&, i] {
        places.acquire();
        if (talk(io, server, "hello " + std::to_string(i))) ++right;
        places.release();
      });
    }
    all.wait();

    // A context ends an operation. From Boost 1.77 on, use_goroutine(soon) is enough.
    asio::steady_timer timer(io, std::chrono::hours(1));
    Context soon = Context::background().with_timeout(std::chrono::milliseconds(1));
    std::error_code error;
    timer.async_wait(use_goroutine(soon, timer)[error]);
    std::printf("%d of %d echoes; the timer: %s\n", right.load(), kClients,
                error.message().c_str());
    return right == kClients && error == std::errc::timed_out ? 0 : 1;
  });
}
