// tls_errors_test.cc: TLS without exceptions, and with contexts.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/net/tls.h>

#include <string>
#include <utility>

#include "echo_server.h"
#include "support/certificate.h"
#include "support/net_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using net::TlsConn;
using net::TlsListener;
using support::certificate;
using support::EchoServer;
using support::error_of;
using support::read_text;

RT_TEST(TlsErrorCodes, SayWhatIsWrongAndClearThemselves) {
  EchoServer server;
  std::error_code error = std::make_error_code(std::errc::io_error);
  TlsConn conn = TlsConn::connect(server.address(), certificate().client(), error);
  EXPECT_FALSE(error) << error.message();
  EXPECT_TRUE(conn.is_open());
  EXPECT_EQ(conn.write("hello", error), 5u);
  EXPECT_FALSE(error);
  std::byte bytes[5];
  EXPECT_EQ(conn.read_exact(bytes, error), 5u);
  EXPECT_FALSE(error);
  conn.set_read_deadline(net::Stream::TimePoint::clock::now());
  EXPECT_EQ(conn.read(bytes, error), 0u);
  EXPECT_EQ(error, std::errc::timed_out);
  conn.set_read_deadline(net::Stream::TimePoint::max());
  conn.shutdown_write(error);
  EXPECT_FALSE(error);
  EXPECT_EQ(conn.read(bytes, error), 0u);  // the end
  EXPECT_FALSE(error);
  conn.close();
  EXPECT_FALSE(conn.is_open());
  (void)conn.read(bytes, error);
  EXPECT_EQ(error, std::errc::operation_canceled);

  TlsConn refused = TlsConn::connect(server.address(), net::TlsClientConfig(), error);
  EXPECT_EQ(&error.category(), &net::tls_errors());
  EXPECT_FALSE(refused.is_open());
  (void)TlsConn::connect("127.0.0.1:1", certificate().client(), error);
  EXPECT_EQ(error, std::errc::connection_refused);
  (void)TlsConn::connect("nonsense", certificate().client(), error);
  EXPECT_EQ(error, std::errc::invalid_argument);
}

RT_TEST(TlsErrorCodes, WhenTimeIsUpBytesThatAreHereAlreadyAreNotRead) {
  EchoServer server;
  TlsConn conn = TlsConn::connect(server.address(), certificate().client());
  conn.write("abc");
  EXPECT_EQ(read_text(conn, 1), "a");  // TLS holds the rest of the record
  std::byte byte[1];
  std::error_code error;
  conn.set_read_deadline(net::Stream::TimePoint::clock::now());
  ASSERT_EQ(conn.read(byte, error), 0u);
  EXPECT_EQ(error, std::errc::timed_out);
  conn.set_read_deadline(net::Stream::TimePoint::max());
  const Context over = Context::background().with_cancel();
  over.cancel();
  ASSERT_EQ(conn.read(byte, over, error), 0u);
  EXPECT_EQ(error, std::errc::operation_canceled);
  EXPECT_EQ(read_text(conn, 2), "bc");  // and nothing is lost
}

RT_TEST(TlsErrorCodes, OfAnExistingConnection) {
  std::error_code error = std::make_error_code(std::errc::io_error);
  auto [client, server] = support::tcp_pair();
  TlsConn conn = TlsConn::client(std::move(client), "localhost", certificate().client(), error);
  EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(conn.remote_address(error), server.local_address());
  EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(conn.local_address(error), server.remote_address());
  TlsConn other = TlsConn::server(std::move(server), certificate().server(), error);
  EXPECT_FALSE(error) << error.message();
  EXPECT_TRUE(other.is_open());
  (void)TlsConn::client(net::TcpConn(), "localhost", certificate().client(), error);
  EXPECT_TRUE(error) << "it has no peer";
  (void)TlsConn().remote_address(error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  (void)TlsConn().local_address(error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
}

RT_TEST(TlsErrorCodes, OfAConfig) {
  std::error_code error = std::make_error_code(std::errc::io_error);
  net::TlsClientConfig trusting({.ca_file = certificate().certificate}, error);
  EXPECT_FALSE(error);
  net::TlsServerConfig serving(
      {.certificate_file = certificate().certificate, .key_file = certificate().key}, error);
  EXPECT_FALSE(error);
  EchoServer server(serving);
  EXPECT_TRUE(TlsConn::connect(server.address(), trusting).is_open());
  serving.reload(error);
  EXPECT_FALSE(error);

  net::TlsServerConfig contradictory({.certificate_file = certificate().certificate,
                                      .key_file = certificate().key,
                                      .client_auth = net::TlsClientAuth::require},
                                     error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  net::TlsServerConfig no_file({.certificate_file = "/no/such"}, error);
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  (void)TlsListener::bind("127.0.0.1:0", no_file, error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  no_file.reload(error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  net::TlsClientConfig nobody({.ca_file = "/no/such"}, error);
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  (void)TlsConn::connect(server.address(), nobody, error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  (void)TlsConn::connect("127.0.0.1:1", error);
  EXPECT_EQ(error, std::errc::connection_refused);
}

RT_TEST(TlsErrorCodes, OfAListener) {
  std::error_code error;
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server(), error);
  EXPECT_FALSE(error);
  listener.set_deadline(net::Stream::TimePoint::clock::now());
  EXPECT_FALSE(listener.accept(error).is_open());
  EXPECT_EQ(error, std::errc::timed_out);
  listener.close();
  (void)listener.accept(error);
  EXPECT_EQ(error, std::errc::operation_canceled);
  const Context over = Context::background().with_cancel();
  over.cancel();
  (void)TlsListener::bind("localhost:0", certificate().server(), over, error);
  EXPECT_EQ(error, std::errc::operation_canceled);
}

RT_TEST(TlsErrorCodes, AnEmptyConnectionSaysSo) {
  TlsConn empty;
  std::byte byte[1];
  EXPECT_EQ(error_of([&] { (void)empty.read(byte); }), std::errc::bad_file_descriptor);
  EXPECT_EQ(error_of([&] { empty.write("x"); }), std::errc::bad_file_descriptor);
  EXPECT_EQ(error_of([&] { empty.handshake(); }), std::errc::bad_file_descriptor);
  EXPECT_EQ(error_of([&] { (void)empty.version(); }), std::errc::bad_file_descriptor);
  EXPECT_EQ(empty.native_handle(), -1);
  EXPECT_FALSE(empty.check_idle());
  empty.set_deadline(1s);
  empty.close();
  TlsListener listener;
  EXPECT_EQ(error_of([&] { (void)listener.accept(); }), std::errc::bad_file_descriptor);
}

// What waits is ended by a goroutine that sees it wait.
void expect_cancelled(auto wait) {
  Context context = Context::background().with_cancel();
  std::size_t waiting_before = stats().waiting;
  WaitGroup canceller;
  canceller.go([&] {
    EXPECT_TRUE(support::waiting(waiting_before + 1));
    context.cancel();
  });
  std::error_code error;
  wait(context, error);
  EXPECT_EQ(error, std::errc::operation_canceled) << error.message();
  canceller.wait();
}

RT_TEST(TlsContexts, EndAHandshakeAndAnAccept) {
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server());
  expect_cancelled([&](const Context& context, std::error_code& error) {
    (void)listener.accept(context, error);
  });
  net::TcpConn silent = net::TcpConn::connect(listener.local_address().to_string());
  TlsConn conn = listener.accept();
  expect_cancelled(
      [&](const Context& context, std::error_code& error) { conn.handshake(context, error); });
  // A server that accepts and says nothing.
  net::TcpListener mute = net::TcpListener::bind("127.0.0.1:0");
  expect_cancelled([&](const Context& context, std::error_code& error) {
    (void)TlsConn::connect(mute.local_address().to_string(), certificate().client(), context,
                           error);
  });
}

RT_TEST(TlsContexts, AReadThatAContextEndedLosesNothing) {
  EchoServer server;
  TlsConn conn = TlsConn::connect(server.address(), certificate().client());
  std::byte byte[1];
  expect_cancelled([&](const Context& context, std::error_code& error) {
    EXPECT_EQ(conn.read(byte, context, error), 0u);
  });
  EXPECT_EQ(error_of([&] { (void)conn.read(byte, Context::background().with_timeout(10ms)); }),
            std::errc::timed_out);
  Context context = Context::background().with_cancel();
  conn.write("hello", context);
  EXPECT_EQ(read_text(conn, 5), "hello");
}

RT_TEST(TlsContexts, EndAWrite) {
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server());
  JoinHandle<TlsConn> connecting = spawn([&] {
    return TlsConn::connect(listener.local_address().to_string(), certificate().client());
  });
  TlsConn reader = listener.accept();
  reader.handshake();
  TlsConn conn = connecting.join();
  expect_cancelled([&](const Context& context, std::error_code& error) {
    const std::string much(64'000'000, 'x');
    EXPECT_LT(conn.write(much, context, error), much.size());
  });
  std::error_code error;
  EXPECT_EQ(conn.write("x", error), 0u);
  EXPECT_EQ(error, std::errc::broken_pipe);
}

// Several readers take turns, and so do writers. Who waits for its turn leaves too.
RT_TEST(TlsContexts, EndTheWaitForATurn) {
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server());
  JoinHandle<TlsConn> connecting = spawn([&] {
    return TlsConn::connect(listener.local_address().to_string(), certificate().client());
  });
  TlsConn peer = listener.accept();
  peer.handshake();
  TlsConn conn = connecting.join();
  WaitGroup before;
  std::byte byte[1];
  std::size_t waiting = stats().waiting;
  before.go([&] { (void)error_of([&] { (void)conn.read(byte); }); });
  before.go([&] { (void)error_of([&] { conn.write(std::string(64'000'000, 'x')); }); });
  ASSERT_TRUE(support::waiting(waiting + 2));
  std::byte another[1];
  expect_cancelled([&](const Context& context, std::error_code& error) {
    (void)conn.read(another, context, error);
  });
  expect_cancelled(
      [&](const Context& context, std::error_code& error) { conn.wait_readable(context, error); });
  expect_cancelled([&](const Context& context, std::error_code& error) {
    (void)conn.write("x", context, error);
  });
  conn.close();
  before.wait();

  net::TcpConn silent = net::TcpConn::connect(listener.local_address().to_string());
  TlsConn unmet = listener.accept();
  waiting = stats().waiting;
  before.go([&] { (void)error_of([&] { unmet.handshake(); }); });
  ASSERT_TRUE(support::waiting(waiting + 1));
  expect_cancelled(
      [&](const Context& context, std::error_code& error) { unmet.handshake(context, error); });
  unmet.close();
  before.wait();
}

}  // namespace
}  // namespace magpie
