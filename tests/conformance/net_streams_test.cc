// net_streams_test.cc: streams of bytes between goroutines, over TCP and Unix sockets.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/net_test.h"

namespace magpie {
namespace {

using support::error_of;
using support::read_all;
using support::read_text;
using support::tcp_pair;

RT_TEST(TcpConn, WhatOneEndWritesTheOtherReads) {
  auto [client, server] = tcp_pair();
  client.write("hello");
  EXPECT_EQ(read_text(server, 5), "hello");
  server.write("and back");
  EXPECT_EQ(read_text(client, 8), "and back");
  EXPECT_EQ(client.remote_address(), server.local_address());
  EXPECT_EQ(server.remote_address(), client.local_address());
}

RT_TEST(TcpConn, ReadBlocksUntilSomethingComesAndOthersRunMeanwhile) {
  auto [client, server] = tcp_pair();
  std::atomic<bool> read = false;
  WaitGroup reader;
  reader.go([&] {
    EXPECT_EQ(read_text(server, 1), "x");
    read = true;
  });
  EXPECT_TRUE(support::waiting(1));
  EXPECT_FALSE(read);
  client.write("x");
  reader.wait();
  EXPECT_TRUE(read);
}

RT_TEST(TcpConn, ReadIsZeroWhenThePeerHasEndedTheStream) {
  auto [client, server] = tcp_pair();
  client.write("last words");
  client.shutdown_write();
  EXPECT_EQ(read_all(server), "last words");
  std::byte byte;
  EXPECT_EQ(server.read({&byte, 1}), 0u);
  server.write("still listening");  // half closed: the other direction works
  server.close();
  EXPECT_EQ(read_all(client), "still listening");
}

// A read stops at the mark of urgent data, and behind bytes that carry a descriptor, although there
// is more.
template <class Conn>
void expect_both_halves(Conn& from) {
  from.set_read_deadline(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  std::string text;
  std::byte buffer[100];
  EXPECT_EQ(error_of([&] {
              while (text.size() < 6) {
                std::size_t count = from.read(buffer);
                text.append(reinterpret_cast<const char*>(buffer), count);
              }
            }),
            std::nullopt);
  EXPECT_EQ(text, "abcdef");
}

RT_TEST(TcpConn, WhatComesBehindUrgentDataIsReadToo) {
  auto [client, server] = tcp_pair();
  WaitGroup first;
  first.go([&server = server] { EXPECT_EQ(read_text(server, 1), "1"); });
  EXPECT_TRUE(support::waiting(1));  // from now on events come for it
  client.write("1");
  first.wait();
  client.write("abc");
  ASSERT_EQ(send(client.native_handle(), "X", 1, MSG_OOB), 1);
  client.write("def");
  sleep_for(std::chrono::milliseconds(20));  // most events have come: that is the hard case
  expect_both_halves(server);
}

RT_TEST(UnixConn, WhatComesBehindBytesThatCarryADescriptorIsReadToo) {
  net::UnixListener listener =
      net::UnixListener::bind("@magpie-short-read-" + std::to_string(getpid()));
  JoinHandle<net::UnixConn> connecting =
      spawn([&] { return net::UnixConn::connect(listener.local_address().to_string()); });
  net::UnixConn server = listener.accept(), client = connecting.join();
  for (auto [from, to] : {std::pair(&server, &client), std::pair(&client, &server)}) {
    WaitGroup first;
    first.go([to = to] { EXPECT_EQ(read_text(*to, 1), "1"); });
    EXPECT_TRUE(support::waiting(1));
    from->write("1");
    first.wait();
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    iovec bytes{const_cast<char*>("abc"), 3};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    const int descriptor = STDERR_FILENO;
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    ASSERT_EQ(sendmsg(from->native_handle(), &message, 0), 3);
    from->write("def");
    sleep_for(std::chrono::milliseconds(20));
    expect_both_halves(*to);
  }
}

// The end arrives together with the bytes: there is no second event for it.
RT_TEST(TcpConn, AnEndThatComesWithTheLastBytesIsSeen) {
  for (int i = 0; i < 50; ++i) {
    auto [client, server] = tcp_pair();
    WaitGroup reader;
    reader.go([&s = server] { EXPECT_EQ(read_all(s), "all there is"); });
    client.write("all there is");
    client.close();
    reader.wait();
  }
}

RT_TEST(TcpConn, ReadExactThrowsWhenTheStreamEndsBefore) {
  auto [client, server] = tcp_pair();
  client.write("abc");
  client.close();
  std::array<std::byte, 5> five;
  EXPECT_THROW(server.read_exact(five), net::EndOfStream);
}

RT_TEST(TcpConn, WriteBlocksWhileNobodyReadsAndWritesAll) {
  auto [client, server] = tcp_pair();
  constexpr std::size_t kBytes = 20'000'000;  // more than any buffer holds
  std::string pattern(65'537, '\0');
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<char>(i * 7 + i / 255);
  std::string sent;
  while (sent.size() < kBytes) sent += pattern;
  WaitGroup writer;
  writer.go([&c = client, &sent] {
    c.write(sent);
    c.shutdown_write();
  });
  EXPECT_TRUE(support::waiting(1));
  EXPECT_TRUE(read_all(server) == sent);
  writer.wait();
}

RT_TEST(TcpConn, PartsAreWrittenOneAfterTheOther) {
  auto [client, server] = tcp_pair();
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back(i % 7 == 0 ? "" : "part " + std::to_string(i));
  std::vector<std::span<const std::byte>> parts;
  std::string all;
  for (const std::string& text : texts) {
    parts.push_back(std::as_bytes(std::span(text)));
    all += text;
  }
  client.write_parts(parts);
  client.shutdown_write();
  EXPECT_EQ(read_all(server), all);
}

RT_TEST(TcpConn, OneReadsWhileAnotherWrites) {
  auto [client, server] = tcp_pair();
  WaitGroup all;
  static constexpr std::size_t kBytes = 3'000'000;
  for (net::TcpConn* end : {&client, &server}) {
    all.go([end] {
      end->write(std::string(kBytes, 'w'));
      end->shutdown_write();
    });
    all.go([end] { EXPECT_EQ(read_all(*end).size(), std::size_t{kBytes}); });
  }
  all.wait();
}

RT_TEST(TcpConn, SeveralWritersDoNotMixTheirMessages) {
  auto [client, server] = tcp_pair();
  constexpr std::size_t kWriters = 8, kSize = 500'000;
  WaitGroup writers;
  for (std::size_t i = 0; i < kWriters; ++i) {
    writers.go([&c = client, i] { c.write(std::string(kSize, static_cast<char>('a' + i))); });
  }
  std::string all = read_text(server, kWriters * kSize);
  for (std::size_t at = 0; at < all.size(); at += kSize)
    EXPECT_EQ(all.find_first_not_of(all[at], at), at + kSize == all.size() ? all.npos : at + kSize);
  writers.wait();
}

RT_TEST(TcpConn, SeveralReadersGetEveryByteOnce) {
  auto [client, server] = tcp_pair();
  constexpr std::size_t kReaders = 8, kEach = 10'000;
  std::atomic<std::size_t> sum = 0;
  WaitGroup readers;
  for (std::size_t i = 0; i < kReaders; ++i) {
    readers.go([&s = server, &sum] {
      std::byte buffer[100];
      while (std::size_t count = s.read(buffer)) sum += count;
    });
  }
  for (std::size_t i = 0; i < kReaders; ++i) client.write(std::string(kEach, 'x'));
  client.close();
  readers.wait();  // the end wakes them all
  EXPECT_EQ(sum, kReaders * kEach);
}

RT_TEST(TcpConn, AResetIsAnErrorNotAnEnd) {
  auto [client, server] = tcp_pair();
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(setsockopt(client.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  client.close();
  std::byte byte;
  EXPECT_EQ(error_of([&] { server.read({&byte, 1}); }), std::errc::connection_reset);
}

RT_TEST(TcpConn, WritingToAPeerThatIsGoneIsAnErrorAndNoSignal) {
  auto [client, server] = tcp_pair();
  server.close();
  std::optional<std::error_code> error;
  while (!error) error = error_of([&c = client] { c.write("anybody there?"); });
  EXPECT_TRUE(*error == std::errc::broken_pipe || *error == std::errc::connection_reset);
}

RT_TEST(TcpConn, ConnectionRefusedSaysSo) {
  std::string nobody;
  {
    net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
    nobody = listener.local_address().to_string();
  }
  EXPECT_EQ(error_of([&] { net::TcpConn::connect(nobody); }), std::errc::connection_refused);
}

// "localhost" has an IPv6 and an IPv4 address on most machines; the server listens on one of them.
RT_TEST(TcpConn, TriesAllAddressesOfAName) {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  std::string port = std::to_string(listener.local_address().port());
  WaitGroup client;
  client.go([&] { net::TcpConn::connect("localhost:" + port).write("found"); });
  net::TcpConn conn = listener.accept();
  EXPECT_EQ(read_all(conn), "found");
  client.wait();
}

RT_TEST(TcpConn, MovesAndItsOldPlaceCanBeAssigned) {
  auto [client, server] = tcp_pair();
  net::TcpConn moved = std::move(client);
  moved.write("moved");
  EXPECT_EQ(read_text(server, 5), "moved");
  client = std::move(moved);
  client.write("back");
  EXPECT_EQ(read_text(server, 4), "back");
}

RT_TEST(TcpListener, ManyConnectionsAtOnce) {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  std::string address = listener.local_address().to_string();
  constexpr int kConns = 200;
  WaitGroup all;
  std::atomic<int> sum = 0;
  for (int i = 0; i < kConns; ++i) {
    all.go([&, i] {
      net::TcpConn conn = net::TcpConn::connect(address);
      conn.write(std::to_string(i));
      conn.shutdown_write();
      sum += std::stoi(read_all(conn));
    });
  }
  for (int i = 0; i < kConns; ++i) {
    all.go([conn = listener.accept()]() mutable {
      std::string got = read_all(conn);
      conn.write(got);
    });
  }
  all.wait();
  EXPECT_EQ(sum, kConns * (kConns - 1) / 2);
}

RT_TEST(UnixConn, WorksAsATcpConnAndTheFileIsRemoved) {
  std::string path = testing::TempDir() + "magpie-unix-" + std::to_string(getpid());
  {
    net::UnixListener listener = net::UnixListener::bind(path);
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
    EXPECT_EQ(listener.local_address().to_string(), path);
    EXPECT_EQ(error_of([&] { net::UnixListener::bind(path); }), std::errc::address_in_use);
    WaitGroup client;
    client.go([&] {
      net::UnixConn conn = net::UnixConn::connect(path);
      conn.write("over there");
      conn.shutdown_write();
      EXPECT_EQ(read_all(conn), "OVER");
    });
    net::UnixConn conn = listener.accept();
    EXPECT_EQ(read_all(conn), "over there");
    conn.write("OVER");
    conn.close();
    client.wait();
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_EQ(error_of([&] { net::UnixConn::connect(path); }), std::errc::no_such_file_or_directory);
}

RT_TEST(UnixConn, NamesWithoutAFile) {
  std::string name = "@magpie-test-" + std::to_string(getpid());
  net::UnixListener listener = net::UnixListener::bind(name);
  EXPECT_EQ(listener.local_address().to_string(), name);
  WaitGroup client;
  client.go([&] { net::UnixConn::connect(name).write("hi"); });
  net::UnixConn conn = listener.accept();
  EXPECT_EQ(read_all(conn), "hi");
  client.wait();
}

RT_TEST(UdpSocket, DatagramsArriveWholeWithTheirSender) {
  net::UdpSocket here = net::UdpSocket::bind("127.0.0.1:0");
  net::UdpSocket there = net::UdpSocket::connect(here.local_address().to_string());
  WaitGroup sender;
  sender.go([&] {
    there.send(std::as_bytes(std::span("one", 3)));
    there.send(std::as_bytes(std::span("three", 5)));
  });
  std::byte buffer[100];
  net::UdpSocket::Received first = here.receive_from(buffer);
  EXPECT_EQ(first.bytes, 3u);
  EXPECT_EQ(first.from, there.local_address());
  EXPECT_EQ(here.receive(buffer), 5u);
  sender.wait();
  here.send_to(std::as_bytes(std::span("back", 4)), first.from);
  EXPECT_EQ(there.receive(buffer), 4u);
}

}  // namespace
}  // namespace magpie
