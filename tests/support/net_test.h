// net_test.h: connections for tests, all on this machine.
#pragma once

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "support/rt_test.h"

namespace magpie::support {

struct TcpPair {
  net::TcpConn client, server;
};

// Two ends of one connection.
inline TcpPair tcp_pair() {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  std::string address = listener.local_address().to_string();
  JoinHandle<net::TcpConn> client = spawn([address] { return net::TcpConn::connect(address); });
  net::TcpConn server = listener.accept();
  return {client.join(), std::move(server)};
}

// The error that f ends with; none: it ends well.
template <class F>
std::optional<std::error_code> error_of(F f) {
  try {
    f();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return std::nullopt;
}

inline std::string read_all(net::Stream& stream) {
  std::string all;
  std::byte buffer[1000];
  while (std::size_t count = stream.read(buffer))
    all.append(reinterpret_cast<const char*>(buffer), count);
  return all;
}

inline std::string read_text(net::Stream& stream, std::size_t size) {
  std::string text(size, '\0');
  stream.read_exact(std::as_writable_bytes(std::span(text)));
  return text;
}

// Goroutines that wait for a descriptor, or anything else.
inline bool waiting(std::size_t goroutines) {
  return eventually([=] { return stats().waiting >= goroutines; });
}

}  // namespace magpie::support
