#include <magpie/net/tls.h>

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "echo_server.h"
#include "support/certificate.h"
#include "support/net_test.h"
#include "support/openssl_tsan.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using net::TlsClientConfig;
using net::TlsConn;
using net::TlsListener;
using net::TlsServerConfig;
using support::certificate;
using support::Certificate;
using support::EchoServer;
using support::error_of;
using support::read_all;
using support::read_text;

RT_TEST(Tls, BytesGoBothWays) {
  EchoServer server;
  TlsConn conn = TlsConn::connect(server.address(), certificate().client());
  EXPECT_EQ(conn.version(), "TLSv1.3");
  EXPECT_EQ(conn.alpn(), "");
  conn.write("hello");
  EXPECT_EQ(read_text(conn, 5), "hello");
  conn.write("farewell");
  conn.shutdown_write();
  EXPECT_EQ(read_all(conn), "farewell");
}

RT_TEST(Tls, MuchInManyParts) {
  EchoServer server;
  TlsConn conn = TlsConn::connect("127.0.0.1:" + server.port, certificate().client());
  std::string all;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 300; ++i)
    texts.push_back(std::string(i % 10 == 0 ? 40'000 : i, static_cast<char>('a' + i % 26)));
  std::vector<std::span<const std::byte>> parts;
  for (const std::string& text : texts) {
    parts.push_back(std::as_bytes(std::span(text)));
    all += text;
  }
  WaitGroup writer;  // one writes while another reads
  writer.go([&] {
    conn.write_parts(parts);
    conn.shutdown_write();
  });
  EXPECT_TRUE(read_all(conn) == all);
  writer.wait();
}

RT_TEST(Tls, ManyConnectionsAtOnceDoNotMixTheirErrors) {
  EchoServer server;
  TlsClientConfig trusting = certificate().client();
  TlsClientConfig distrusting;  // trusts whom the system trusts
  WaitGroup clients;
  std::atomic<int> good = 0, bad = 0;
  for (int i = 0; i < 40; ++i) {
    clients.go([&, i] {
      std::optional<std::error_code> error = error_of([&] {
        TlsConn conn = TlsConn::connect(server.address(), i % 4 == 0 ? distrusting : trusting);
        for (int k = 0; k < 10; ++k) {
          std::string text = "client " + std::to_string(i) + " round " + std::to_string(k);
          conn.write(text);
          EXPECT_EQ(read_text(conn, text.size()), text);
        }
      });
      if (!error) {
        ++good;
      } else {
        EXPECT_EQ(&error->category(), &net::tls_errors()) << error->message();
        ++bad;
      }
    });
  }
  clients.wait();
  EXPECT_EQ(good, 30);
  EXPECT_EQ(bad, 10);
}

RT_TEST(Tls, ACertificateOfNobodyWeTrustIsRefusedInWords) {
  EchoServer server;
  try {
    TlsConn::connect(server.address());
    ADD_FAILURE();
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("self-signed"), std::string::npos) << error.what();
  }
  TlsConn conn = TlsConn::connect(server.address(),
                                  TlsClientConfig({.verify = false, .ca_file = {}, .alpn = {}}));
  conn.write("x");
  EXPECT_EQ(read_text(conn, 1), "x");
}

RT_TEST(Tls, ACertificateForAnotherNameIsRefused) {
  EchoServer server;
  TlsConn conn = TlsConn::client(net::TcpConn::connect(server.address()), "example.org",
                                 certificate().client());
  try {
    conn.handshake();
    ADD_FAILURE();
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("ostname mismatch"), std::string::npos)
        << error.what();
  }
}

RT_TEST(Tls, TheProtocolBothKnowIsChosen) {
  EchoServer server(certificate().server({"h2", "http/1.1"}));
  TlsConn conn = TlsConn::connect(server.address(), certificate().client({"spdy", "http/1.1"}));
  EXPECT_EQ(conn.alpn(), "http/1.1");
  EXPECT_TRUE(error_of([&] {
                TlsConn::connect(server.address(), certificate().client({"gopher"})).handshake();
              }).has_value());
}

RT_TEST(Tls, ASecondConnectionTakesUpTheSessionOfTheFirst) {
  EchoServer server;
  TlsClientConfig config = certificate().client();
  for (bool resumed : {false, true, true}) {
    TlsConn conn = TlsConn::connect(server.address(), config);
    EXPECT_EQ(conn.was_resumed(), resumed);
    conn.write("x");
    EXPECT_EQ(read_text(conn, 1), "x");  // the ticket comes before it
  }
}

RT_TEST(Tls, AStreamThatIsCutOffIsAnErrorNotAnEnd) {
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server());
  WaitGroup client;
  client.go([&] {
    TlsConn conn = TlsConn::connect(listener.local_address().to_string(), certificate().client());
    conn.write("half a mess");
    ::shutdown(conn.native_handle(), SHUT_WR);  // without a word
    EXPECT_EQ(read_all(conn), "");
  });
  TlsConn conn = listener.accept();
  EXPECT_EQ(read_text(conn, 11), "half a mess");
  EXPECT_EQ(error_of([&] { read_text(conn, 1); }), std::errc::connection_aborted);
  conn.shutdown_write();
  client.wait();
}

RT_TEST(Tls, GarbageInsteadOfAHandshakeIsAnError) {
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server());
  WaitGroup client;
  client.go([&] {
    net::TcpConn conn = net::TcpConn::connect(listener.local_address().to_string());
    conn.write("GET / HTTP/1.1\r\n\r\n");
    (void)read_all(conn);
  });
  TlsConn conn = listener.accept();
  std::optional<std::error_code> error = error_of([&] { conn.handshake(); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(&error->category(), &net::tls_errors());
  conn.close();
  client.wait();
}

RT_TEST(Tls, ASilentPeerRunsIntoTheDeadline) {
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server());
  net::TcpConn silent = net::TcpConn::connect(listener.local_address().to_string());
  TlsConn conn = listener.accept();  // does not wait for the handshake
  conn.set_deadline(10ms);
  EXPECT_EQ(error_of([&] { conn.handshake(); }), std::errc::timed_out);
}

RT_TEST(Tls, CloseWakesThoseWhoWait) {
  EchoServer server;
  TlsClientConfig config = certificate().client();
  // Many times: the peer's answer to close()'s farewell races with close().
  for (int i = 0; i < support::scaled(400); ++i) {
    TlsConn conn = TlsConn::connect(server.address(), config);
    conn.write("1");
    read_text(conn, 1);
    std::size_t waiting_before = stats().waiting;
    WaitGroup reader;
    reader.go([&] {
      std::byte byte[1];
      EXPECT_EQ(error_of([&] { (void)conn.read(byte); }), std::errc::operation_canceled);
    });
    ASSERT_TRUE(support::waiting(waiting_before + 1));
    conn.close();
    reader.wait();
  }
}

}  // namespace
}  // namespace magpie
