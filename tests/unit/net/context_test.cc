// context_test.cc: a context ends the calls that wait with it, and nothing is lost.

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "support/net_test.h"

namespace magpie::net {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::error_of;
using support::read_all;
using support::read_text;
using support::tcp_pair;

// f(ctx) waits, and ends with the error of the context: cancelled while it waits, cancelled before,
// and too late.
template <class F>
void expect_ends_with_context(F f) {
  Context context = Context::background().with_cancel();
  WaitGroup waiter;
  waiter.go([&] { EXPECT_EQ(error_of([&] { f(context); }), std::errc::operation_canceled); });
  ASSERT_TRUE(support::waiting(1));
  context.cancel();
  waiter.wait();
  EXPECT_EQ(error_of([&] { f(context); }), std::errc::operation_canceled);
  auto end = steady_clock::now() + 5ms;
  EXPECT_EQ(error_of([&] { f(Context::background().with_deadline(end)); }), std::errc::timed_out);
  EXPECT_GE(steady_clock::now(), end);
}

RT_TEST(NetContext, EndsReading) {
  auto [client, server] = tcp_pair();
  expect_ends_with_context([&s = server](const Context& context) {
    std::byte byte;
    s.read({&byte, 1}, context);
  });
  expect_ends_with_context([&s = server](const Context& context) {
    std::array<std::byte, 5> five;
    s.read_exact(five, context);
  });
  expect_ends_with_context([&s = server](const Context& context) { s.wait_readable(context); });
  client.write("still");  // the stream is as it was
  EXPECT_EQ(read_text(server, 5), "still");
}

RT_TEST(NetContext, EndsAcceptAndWaitingForDescriptors) {
  TcpListener listener = TcpListener::bind("127.0.0.1:0");
  expect_ends_with_context([&](const Context& context) { listener.accept(context); });
  UnixListener on_path = UnixListener::bind("@magpie-context-" + std::to_string(getpid()));
  expect_ends_with_context([&](const Context& context) { on_path.accept(context); });
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  expect_ends_with_context([&](const Context& context) { wait_readable(ends[0], context); });
  close(ends[0]);
  close(ends[1]);
}

RT_TEST(NetContext, EndsReceiving) {
  UdpSocket here = UdpSocket::bind("127.0.0.1:0");
  expect_ends_with_context([&](const Context& context) {
    std::byte byte;
    here.receive({&byte, 1}, context);
  });
  Context over = Context::background().with_cancel();
  over.cancel();
  std::error_code error;
  here.send_to({}, here.local_address(), over, error);
  EXPECT_EQ(error, std::errc::operation_canceled);
}

RT_TEST(NetContext, EndsAWriteWhichSaysHowMuchIsWritten) {
  auto [client, server] = tcp_pair();
  std::string much(30'000'000, 'x');
  Context context = Context::background().with_cancel();
  std::error_code error;
  std::size_t written = 0;
  WaitGroup writer;
  writer.go([&, &c = client] { written = c.write(much, context, error); });
  ASSERT_TRUE(support::waiting(1));
  context.cancel();
  writer.wait();
  EXPECT_EQ(error, std::errc::operation_canceled);
  client.close();
  EXPECT_EQ(read_all(server).size(), written);
}

RT_TEST(NetContext, WhatReadExactHadIsToldWhenItIsCancelled) {
  auto [client, server] = tcp_pair();
  client.write("abc");
  Context context = Context::background().with_cancel();
  std::array<std::byte, 10> ten;
  std::error_code error;
  std::size_t got = 0;
  WaitGroup reader;
  reader.go([&, &s = server] { got = s.read_exact(ten, context, error); });
  ASSERT_TRUE(support::waiting(1));
  context.cancel();
  reader.wait();
  EXPECT_EQ(error, std::errc::operation_canceled);
  EXPECT_EQ(got, 3u);
  EXPECT_EQ(std::to_integer<char>(ten[2]), 'c');
}

// A socket that neither accepts nor refuses: its line is full.
RT_TEST(NetContext, EndsConnecting) {
  TcpListener full = TcpListener::bind("127.0.0.1:0", {.backlog = 0});
  std::string address = full.local_address().to_string();
  TcpConn first = TcpConn::connect(address);
  auto line = [&] {
    tcp_info info{};
    socklen_t size = sizeof info;
    EXPECT_EQ(getsockopt(full.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_unacked;  // of a socket that listens: how many wait
  };
  ASSERT_TRUE(support::eventually([&] { return line() == 1; }));
  expect_ends_with_context([&](const Context& context) { TcpConn::connect(address, context); });
  EXPECT_EQ(error_of([&] { TcpConn::connect(address, 10ms); }), std::errc::timed_out);
}

RT_TEST(NetContext, EndsTheLookUpOfANameToBind) {
  struct Mute : Resolver {
    std::vector<Address> look_up(const std::string&, TimePoint, const Context* context,
                                 std::error_code& error) override {
      EXPECT_NE(context, nullptr);
      if (context != nullptr) {
        context->done().recv();
        error = context->err();
      }
      return {};
    }
  };
  set_resolver(std::make_shared<Mute>());
  expect_ends_with_context(
      [](const Context& context) { TcpListener::bind("name:0", BindOptions(), context); });
  expect_ends_with_context(
      [](const Context& context) { UdpSocket::bind("name:0", BindOptions(), context); });
  const Context over = Context::background().with_cancel();
  over.cancel();
  std::error_code error;
  EXPECT_FALSE(TcpListener::bind("name:0", BindOptions(), over, error).is_open());
  EXPECT_EQ(error, std::errc::operation_canceled);
  EXPECT_FALSE(UdpSocket::bind("name:0", BindOptions(), over, error).is_open());
  EXPECT_EQ(error, std::errc::operation_canceled);
  set_resolver(nullptr);
}

RT_TEST(NetContext, ThatLivesDoesNotDisturb) {
  auto [client, server] = tcp_pair();
  Context context = Context::background().with_timeout(1h);
  WaitGroup reader;
  reader.go([&, &s = server] {
    std::string text(5, '\0');
    s.read_exact(std::as_writable_bytes(std::span(text)), context);
    EXPECT_EQ(text, "hello");
  });
  for (char c : std::string("hello")) {
    client.write(std::string_view(&c, 1), context);
    yield();
  }
  reader.wait();
}

RT_TEST(NetContext, ManyWaitWithTheSame) {
  Context context = Context::background().with_cancel();
  std::atomic<int> ended = 0;
  WaitGroup all;
  for (int i = 0; i < 50; ++i) {
    all.go([&] {
      auto [client, server] = tcp_pair();
      std::byte byte;
      std::error_code error;
      server.read({&byte, 1}, context, error);
      if (error == std::errc::operation_canceled) ++ended;
    });
  }
  ASSERT_TRUE(support::waiting(50));
  context.cancel();
  all.wait();
  EXPECT_EQ(ended, 50);
}

// Bytes and the end come at the same time, over and over: each byte is read, or is still there.
RT_TEST(NetContext, ACancelThatRacesWithBytesLosesNone) {
  auto [client, server] = tcp_pair();
  std::size_t sent = 0, got = 0;
  for (int i = 0; i < 300; ++i) {
    Context context = Context::background().with_cancel();
    WaitGroup both;
    both.go([&, &s = server] {
      std::byte buffer[8];
      std::error_code error;
      got += s.read(buffer, context, error);
    });
    both.go([&, &c = client] {
      c.write("x");
      ++sent;
    });
    if (i % 3 == 0) yield();
    context.cancel();
    both.wait();
  }
  client.close();
  got += read_all(server).size();
  EXPECT_EQ(got, sent);
}

TEST(NetContext, EndsAPlainThreadsCalls) {
  run([] {
    auto pair = tcp_pair();
    Context context = Context::background().with_cancel();
    std::atomic<bool> began = false;
    std::thread thread([&] {
      began = true;
      std::byte byte;
      EXPECT_EQ(error_of([&] {
                  pair.server.read({&byte, 1}, context);
                }),
                std::errc::operation_canceled);
    });
    EXPECT_TRUE(support::eventually([&] { return began.load(); }));
    sleep_for(5ms);  // most likely it waits now
    context.cancel();
    blocking([&] { thread.join(); });
  });
}

TEST(NetContext, MayEndAfterARunWhoseGoroutinesWaitedWithIt) {
  Context context = Context::background().with_cancel();
  std::unique_ptr<support::TcpPair> pair;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  run([&] {
    pair = std::make_unique<support::TcpPair>(tcp_pair());
    go([&server = pair->server, &context] {
      std::byte byte;
      server.read({&byte, 1}, context);
    });
#ifndef __SANITIZE_ADDRESS__  // whatever a goroutine owns that is dropped is a leak
    go([fd = ends[0], &context] { wait_readable(fd, context); });
    EXPECT_TRUE(support::waiting(2));
#else
    EXPECT_TRUE(support::waiting(1));
#endif
  });
  context.cancel();
  run([&] {
    pair->client.write("x");
    EXPECT_EQ(read_text(pair->server, 1), "x");
  });
  close(ends[0]);
  close(ends[1]);
}

// ---- streams that know nothing of contexts and error codes

// As somebody may have written it before there were any.
class OldStream final : public Stream {
 public:
  explicit OldStream(TcpConn conn) : conn_(std::move(conn)) {}
  using Stream::read;
  using Stream::shutdown_write;
  using Stream::write_parts;
  std::size_t read(std::span<std::byte> into) override { return conn_.read(into); }
  void write_parts(Parts parts) override { conn_.write_parts(parts); }
  void shutdown_write() override { conn_.shutdown_write(); }
  void close() noexcept override { conn_.close(); }

 private:
  void do_set_read_deadline(TimePoint time) noexcept override { conn_.set_read_deadline(time); }
  void do_set_write_deadline(TimePoint time) noexcept override { conn_.set_write_deadline(time); }

  TcpConn conn_;
};

RT_TEST(NetContext, EndsTheCallsOfStreamsThatKnowNothingOfIt) {
  auto [client, server] = tcp_pair();
  OldStream old(std::move(server));
  expect_ends_with_context([&](const Context& context) {
    old.set_deadline(Stream::TimePoint::max());
    std::byte byte;
    old.read({&byte, 1}, context);
  });
  old.set_deadline(Stream::TimePoint::max());
  client.write("x");
  EXPECT_EQ(read_text(old, 1), "x");
  std::error_code error;
  EXPECT_EQ(old.write("abc", error), 3u);
  EXPECT_FALSE(error);
  old.shutdown_write(error);
  EXPECT_FALSE(error);
  EXPECT_EQ(read_all(client), "abc");
  old.close();
  std::byte byte;
  old.read({&byte, 1}, error);
  EXPECT_EQ(error, std::errc::operation_canceled);
}

}  // namespace
}  // namespace magpie::net
