// tls_hostile_test.cc: peers that keep to the letter of TLS and do harm.
#include <gtest/gtest.h>
#include <magpie/net/tls.h>
#include <sys/socket.h>

#include <optional>
#include <string>

#include "raw_tls.h"
#include "support/certificate.h"
#include "support/net_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using net::TlsConn;
using net::TlsListener;
using support::certificate;
using support::Certificate;
using support::error_of;
using support::RawTls;
using support::read_text;

void keep_little(int option, int fd) {
  int bytes = 1;  // the system makes it its least
  EXPECT_EQ(setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes), 0);
}

// Two ends that have agreed. Little fits between them on the way to the peer. The listener's buffer
// is that of the connections it accepts.
struct Pair {
  Pair() {
    net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
    keep_little(SO_RCVBUF, listener.native_handle());
    JoinHandle<TlsConn> connecting = spawn([address = listener.local_address().to_string()] {
      return TlsConn::connect(address, certificate().client());
    });
    peer.emplace(listener.accept(), certificate());
    EXPECT_TRUE(peer->handshake());
    ours.emplace(connecting.join());
    keep_little(SO_SNDBUF, ours->native_handle());
  }
  std::optional<RawTls> peer;
  std::optional<TlsConn> ours;
};

RT_TEST(TlsHostile, APeerThatOnlyChangesKeysIsRefused) {
  Pair pair;
  for (int i = 0; i < 100; ++i) pair.peer->update_keys();
  pair.peer->say("x");
  pair.peer->send();
  std::byte byte[1];
  EXPECT_EQ(error_of([&] { (void)pair.ours->read(byte); }), std::errc::protocol_error);
}

RT_TEST(TlsHostile, KeysMayChangeBetweenBytes) {
  Pair pair;
  for (int i = 0; i < 100; ++i) {
    pair.peer->update_keys();
    pair.peer->say("x");
  }
  pair.peer->send();
  EXPECT_EQ(read_text(*pair.ours, 100), std::string(100, 'x'));
}

// The peer's wishes for new keys are answered by writing. It does not read, so the system soon
// takes no more.
RT_TEST(TlsHostile, AReadDoesNotWaitForAPeerThatDoesNotRead) {
  Pair pair;
  pair.ours->set_write_deadline(net::Stream::TimePoint::clock::now() + 5s);  // not to hang
  for (int i = 0; i < 1000; ++i) {
    pair.peer->update_keys();
    pair.peer->say("x");
    pair.peer->send();
    EXPECT_EQ(read_text(*pair.ours, 1), "x");
  }
  // It has asked for more than it will ever read: that is not kept without end.
  EXPECT_EQ(error_of([&] {
              for (int i = 0; i < 100'000; ++i) {
                pair.peer->update_keys();
                pair.peer->say("x");
                pair.peer->send();
                (void)read_text(*pair.ours, 1);
              }
            }),
            std::errc::protocol_error);
}

// What reading left unsent goes out before what is written, in its order.
RT_TEST(TlsHostile, WhatAReadLeftUnsentGoesOutWithTheNextWrite) {
  Pair pair;
  for (int i = 0; i < 1000; ++i) {
    pair.peer->update_keys();
    pair.peer->say("x");
    pair.peer->send();
    EXPECT_EQ(read_text(*pair.ours, 1), "x");
  }
  WaitGroup writer;
  writer.go([&] { pair.ours->write("answer"); });
  EXPECT_EQ(pair.peer->hear(6), "answer");
  writer.wait();
}

RT_TEST(TlsHostile, TheReadDeadlineEndsAHandshakeThatWaitsToWrite) {
  Certificate long_one;
  long_one.append_to_chain(1000);
  TlsListener listener = TlsListener::bind("127.0.0.1:0", long_one.server());
  RawTls client(net::TcpConn::connect(listener.local_address().to_string()));
  keep_little(SO_RCVBUF, client.conn().native_handle());
  client.greet();
  client.send();
  TlsConn conn = listener.accept();
  keep_little(SO_SNDBUF, conn.native_handle());
  conn.set_read_deadline(net::Stream::TimePoint::clock::now() + 20ms);
  std::byte byte[1];
  EXPECT_EQ(error_of([&] { (void)conn.read(byte); }), std::errc::timed_out);
}

RT_TEST(TlsHostile, TheWriteDeadlineEndsAHandshakeThatWaitsToRead) {
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server());
  net::TcpConn silent = net::TcpConn::connect(listener.local_address().to_string());
  TlsConn conn = listener.accept();
  conn.set_write_deadline(net::Stream::TimePoint::clock::now() + 10ms);
  EXPECT_EQ(error_of([&] { conn.write("x"); }), std::errc::timed_out);
}

RT_TEST(TlsHostile, AfterTheHandshakeEachDeadlineCountsForItsSide) {
  Pair pair;
  pair.ours->set_read_deadline(net::Stream::TimePoint::clock::now());
  pair.ours->write("x");
  EXPECT_EQ(pair.peer->hear(1), "x");
  std::byte byte[1];
  EXPECT_EQ(error_of([&] { (void)pair.ours->read(byte); }), std::errc::timed_out);
}

RT_TEST(TlsHostile, AWriteThatWasCutShortIsTheLast) {
  Pair pair;
  pair.ours->set_write_deadline(net::Stream::TimePoint::clock::now() + 10ms);
  EXPECT_EQ(error_of([&] { pair.ours->write(std::string(1'000'000, 'x')); }), std::errc::timed_out);
  pair.ours->set_write_deadline(net::Stream::TimePoint::max());
  EXPECT_EQ(error_of([&] { pair.ours->write("x"); }), std::errc::broken_pipe);
}

// ---- whether a connection that rests can be used again

RT_TEST(TlsIdle, TicketsAndNewKeysAreNoWords) {
  Pair pair;
  EXPECT_TRUE(pair.ours->check_idle());
  for (int i = 0; i < 5; ++i) pair.peer->update_keys();
  pair.peer->send();
  EXPECT_TRUE(pair.ours->check_idle());
  pair.peer->say("x");
  pair.peer->send();
  EXPECT_FALSE(pair.ours->check_idle());
  EXPECT_EQ(read_text(*pair.ours, 1), "x");  // it is still there
  EXPECT_TRUE(pair.ours->check_idle());
}

RT_TEST(TlsIdle, AFarewellIsAnEnd) {
  Pair pair;
  pair.peer->say_farewell();
  pair.peer->send();
  EXPECT_FALSE(pair.ours->check_idle());
}

RT_TEST(TlsIdle, TheEndOfTheStreamIsAnEnd) {
  Pair pair;
  pair.peer->conn().close();
  EXPECT_FALSE(pair.ours->check_idle());
}

RT_TEST(TlsIdle, HalfARecordIsTheBeginningOfSomething) {
  Pair pair;
  pair.peer->say("x");
  pair.peer->send_half();
  EXPECT_FALSE(pair.ours->check_idle());
}

RT_TEST(TlsIdle, WhoHasNotAgreedIsNotIdle) {
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server());
  net::TcpConn silent = net::TcpConn::connect(listener.local_address().to_string());
  EXPECT_FALSE(listener.accept().check_idle());
}

}  // namespace
}  // namespace magpie
