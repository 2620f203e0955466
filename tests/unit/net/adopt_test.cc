// adopt_test.cc: sockets that others have opened, and options of those that we open.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <system_error>

#include "support/net_test.h"

namespace magpie::net {
namespace {

using namespace std::chrono_literals;
using support::error_of;
using support::read_all;
using support::read_text;

int listening_socket(Address* address) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  Address any = Address::parse("127.0.0.1:0");
  EXPECT_EQ(bind(fd, any.data(), any.size()), 0);
  EXPECT_EQ(listen(fd, 10), 0);
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size), 0);
  *address = Address::from(reinterpret_cast<sockaddr*>(&storage), size);
  return fd;
}

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(fd, level, name, &value, &size), 0);
  return value;
}

RT_TEST(Adopt, AListenerThatBlockedAccepts) {
  Address address;
  TcpListener listener = TcpListener::adopt(listening_socket(&address));
  EXPECT_EQ(listener.local_address(), address);
  JoinHandle<TcpConn> client = spawn([&] { return TcpConn::connect(address.to_string()); });
  TcpConn server = listener.accept();
  client.join().write("x");
  EXPECT_EQ(read_text(server, 1), "x");
}

RT_TEST(Adopt, AConnectionReadsAndWrites) {
  TcpListener listener = TcpListener::bind("127.0.0.1:0");
  Address address = listener.local_address();
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(fd, address.data(), address.size()), 0);
  TcpConn client = TcpConn::adopt(fd), server = listener.accept();
  EXPECT_EQ(client.remote_address(), address);
  client.write("there");
  EXPECT_EQ(read_text(server, 5), "there");
  WaitGroup reader;
  reader.go([&] { EXPECT_EQ(read_text(client, 4), "back"); });
  EXPECT_TRUE(support::waiting(1));  // it waits, and does not block
  server.write("back");
  reader.wait();
}

RT_TEST(Adopt, TheEndsOfASocketpairAreUnixConnections) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  UnixConn one = UnixConn::adopt(ends[0]), other = UnixConn::adopt(ends[1]);
  one.write("x");
  one.close();
  EXPECT_EQ(read_all(other), "x");
}

RT_TEST(Adopt, WhatIsNotWhatItShouldBeStaysTheCallers) {
  Address address;
  int listening = listening_socket(&address);
  int datagrams = socket(AF_INET, SOCK_DGRAM, 0), fresh = socket(AF_INET, SOCK_STREAM, 0);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::error_code error;
  auto expect_refused = [&] { EXPECT_EQ(error, std::errc::invalid_argument); };
  for (int fd : {datagrams, fresh, ends[0]}) {
    EXPECT_FALSE(TcpListener::adopt(fd, error).is_open());
    expect_refused();
    EXPECT_FALSE(TcpConn::adopt(fd, error).is_open());
    expect_refused();
  }
  TcpConn::adopt(listening, error);
  expect_refused();
  UnixListener::adopt(listening, error);
  expect_refused();
  UdpSocket::adopt(listening, error);
  expect_refused();
  EXPECT_EQ(error_of([&] { TcpConn::adopt(ends[0]); }), std::errc::invalid_argument);
  EXPECT_EQ(error_of([] { TcpListener::adopt(-1); }), std::errc::bad_file_descriptor);
  for (int fd : {listening, datagrams, fresh, ends[0], ends[1]}) EXPECT_EQ(close(fd), 0);
}

RT_TEST(Adopt, ADatagramSocketReceives) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  Address any = Address::parse("127.0.0.1:0");
  ASSERT_EQ(bind(fd, any.data(), any.size()), 0);
  UdpSocket here = UdpSocket::adopt(fd);
  UdpSocket there = UdpSocket::connect(here.local_address().to_string());
  there.send(std::as_bytes(std::span("abc", 3)));
  std::byte buffer[10];
  EXPECT_EQ(here.receive(buffer), 3u);
}

// In a process of its own: the sockets have to be 3 and 4.
TEST(Inherited, SocketsOfSystemdAreFoundWithTheirNames) {
  Address address;
  int listening = listening_socket(&address);
  int path = socket(AF_UNIX, SOCK_STREAM, 0);
  pid_t child = fork();
  if (child == 0) {
    // Out of the way first: one of them may be 3 or 4.
    int high_one = fcntl(listening, F_DUPFD, 100), high_two = fcntl(path, F_DUPFD, 100);
    dup2(high_one, 3);
    dup2(high_two, 4);
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", "2", 1);
    setenv("LISTEN_FDNAMES", "web:control", 1);
    std::vector<InheritedSocket> found = inherited_sockets();
    bool right = found.size() == 2 && found[0].fd == 3 && found[0].name == "web" &&
                 found[1].fd == 4 && found[1].name == "control" &&
                 (fcntl(3, F_GETFD) & FD_CLOEXEC) != 0;
    std::error_code error;
    right = right && TcpListener::adopt(3, error).local_address(error) == address && !error;
    setenv("LISTEN_PID", "1", 1);  // for somebody else
    right = right && inherited_sockets().empty();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(listening);
  close(path);
}

// A sum of int would wrap around, or the loop would ask for two thousand million descriptors.
TEST(Inherited, ANumberBeyondAllDescriptorsFindsThoseThatAreThere) {
  int path = socket(AF_UNIX, SOCK_STREAM, 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(path, 3);
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    bool right = true;
    for (const char* number : {"2147483647", "2147483644", "2147483000"}) {
      setenv("LISTEN_FDS", number, 1);
      std::vector<InheritedSocket> found = inherited_sockets();
      right = right && !found.empty() && found[0].fd == 3;
    }
    for (const char* number : {"0", "-1", "-2147483648", "2147483648", "one", ""}) {
      setenv("LISTEN_FDS", number, 1);
      right = right && inherited_sockets().empty();
    }
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(path);
}

TEST(Inherited, ThereAreNoneWithoutSystemd) {
  unsetenv("LISTEN_PID");
  EXPECT_TRUE(inherited_sockets().empty());
}

// ---- options

RT_TEST(BindOptions, SeveralListenersShareAPort) {
  TcpListener first = TcpListener::bind("127.0.0.1:0", {.reuse_port = true});
  std::string address = first.local_address().to_string();
  TcpListener second = TcpListener::bind(address, {.reuse_port = true});
  EXPECT_EQ(error_of([&] { TcpListener::bind(address); }), std::errc::address_in_use);
  UdpSocket one = UdpSocket::bind("127.0.0.1:0", {.reuse_port = true});
  UdpSocket two = UdpSocket::bind(one.local_address().to_string(), {.reuse_port = true});
}

// The system's line holds one more than it is told.
RT_TEST(BindOptions, BacklogLimitsHowManyWait) {
  TcpListener listener = TcpListener::bind("127.0.0.1:0", {.backlog = 1});
  tcp_info info{};
  socklen_t size = sizeof info;
  ASSERT_EQ(getsockopt(listener.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  EXPECT_EQ(info.tcpi_sacked, 1u);  // the limit of a socket that listens
}

RT_TEST(KeepAlive, IsOnAndMayBeChanged) {
  auto [client, server] = support::tcp_pair();
  for (TcpConn* conn : {&client, &server}) {
    int fd = conn->native_handle();
    EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 15);
    conn->set_keep_alive(100s);
    EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 100);
    conn->set_keep_alive(1000h);  // more than the system knows
    EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    conn->set_keep_alive(0s);
    EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
  }
  TcpListener without = TcpListener::bind("127.0.0.1:0", {.keep_alive = 0s});
  JoinHandle<TcpConn> connecting =
      spawn([&] { return TcpConn::connect(without.local_address().to_string()); });
  EXPECT_EQ(option(without.accept().native_handle(), SOL_SOCKET, SO_KEEPALIVE), 0);
  connecting.join();
}

RT_TEST(UnixBindOptions, AFileThatNobodyListensAtIsReplacedIfAskedFor) {
  std::string path = testing::TempDir() + "magpie-stale-" + std::to_string(getpid());
  int killed = socket(AF_UNIX, SOCK_STREAM, 0);
  Address address = Address::unix_path(path);
  ASSERT_EQ(bind(killed, address.data(), address.size()), 0);
  close(killed);  // the file stays
  EXPECT_EQ(error_of([&] { UnixListener::bind(path); }), std::errc::address_in_use);
  UnixListener listener = UnixListener::bind(path, {.replace_stale = true});
  // One that somebody listens at is not.
  EXPECT_EQ(error_of([&] { UnixListener::bind(path, {.replace_stale = true}); }),
            std::errc::address_in_use);
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace magpie::net
