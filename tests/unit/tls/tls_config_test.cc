// tls_config_test.cc: certificates, names, versions, tickets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <magpie/net/file.h>
#include <magpie/net/tls.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "echo_server.h"
#include "raw_tls.h"
#include "support/certificate.h"
#include "support/net_test.h"
#include "support/plain_thread.h"
#include "tls/config.h"
#include "tls/ticket_keys.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using net::TlsClientAuth;
using net::TlsClientConfig;
using net::TlsConn;
using net::TlsListener;
using net::TlsServerConfig;
using net::TlsVersion;
using support::certificate;
using support::Certificate;
using support::EchoServer;
using support::error_of;
using support::eventually;
using support::PlainThread;
using support::RawTls;
using support::read_text;

// The common name of the certificate that a server shows to who asks for that host.
std::string shown_to(const EchoServer& server, const std::string& host,
                     const TlsClientConfig& config) {
  TlsConn conn = TlsConn::client(net::TcpConn::connect("127.0.0.1:" + server.port), host, config);
  conn.handshake();
  EXPECT_TRUE(conn.peer_certificate().has_value());
  return conn.peer_certificate()->common_name;
}

TlsClientConfig trusting_anybody() { return TlsClientConfig({.verify = false}); }

std::string message_of(auto make) {
  try {
    make();
  } catch (const std::system_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TlsConfig, SaysWhichFileIsWrongAndWhy) {
  auto missing = [] {
    TlsServerConfig({.certificate_file = "/no/such.crt", .key_file = "/no/such.key"});
  };
  EXPECT_EQ(error_of(missing), std::errc::no_such_file_or_directory);
  EXPECT_EQ(message_of(missing),
            "magpie: the certificate in /no/such.crt: No such file or directory");
  auto no_key = [] {
    TlsServerConfig({.certificate_file = certificate().certificate, .key_file = "/no/such.key"});
  };
  EXPECT_EQ(error_of(no_key), std::errc::no_such_file_or_directory);
  EXPECT_NE(message_of(no_key).find("/no/such.key"), std::string::npos);
  auto no_ca = [] { TlsClientConfig({.ca_file = "/no/such.ca"}); };
  EXPECT_EQ(error_of(no_ca), std::errc::no_such_file_or_directory);
  EXPECT_NE(message_of(no_ca).find("/no/such.ca"), std::string::npos);
  // A key is no certificate.
  std::string text = message_of([] { TlsClientConfig({.ca_file = certificate().key}); });
  EXPECT_NE(text.find(certificate().key + ": "), std::string::npos) << text;
  Certificate another;
  text = message_of([&] {
    TlsServerConfig({.certificate_file = certificate().certificate, .key_file = another.key});
  });
  EXPECT_NE(text.find(another.key), std::string::npos) << text;
  EXPECT_NE(text.find("key values mismatch"), std::string::npos) << text;
  EXPECT_THROW(TlsServerConfig({.certificate_file = certificate().certificate,
                                .key_file = certificate().key,
                                .client_auth = TlsClientAuth::require}),
               std::invalid_argument);
}

RT_TEST(TlsNames, ACertificateWithoutAlternativeNamesIsRefused) {
  Certificate plain({.common_name = "localhost", .names = ""});
  EchoServer server(plain.server());
  std::string text = message_of([&] { TlsConn::connect(server.address(), plain.client()); });
  EXPECT_NE(text.find("ostname mismatch"), std::string::npos) << text;
  EXPECT_NE(text.find(server.address()), std::string::npos) << text;
}

RT_TEST(TlsNames, TheNameThatIsAskedForChoosesTheCertificate) {
  Certificate one({.common_name = "one", .names = "DNS:one.test"});
  Certificate two({.common_name = "two", .names = "DNS:two.test,DNS:*.two.test"});
  EchoServer server(TlsServerConfig({.certificate_file = certificate().certificate,
                                     .key_file = certificate().key,
                                     .more_identities = {one.identity(), two.identity()}}));
  EXPECT_EQ(shown_to(server, "localhost", certificate().client()), "magpie test");
  EXPECT_EQ(shown_to(server, "one.test", one.client()), "one");
  EXPECT_EQ(shown_to(server, "ONE.test", one.client()), "one");
  EXPECT_EQ(shown_to(server, "two.test", two.client()), "two");
  EXPECT_EQ(shown_to(server, "a.two.test", two.client()), "two");
  EXPECT_EQ(shown_to(server, "a.b.two.test", trusting_anybody()), "magpie test");
  EXPECT_EQ(shown_to(server, "127.0.0.1", certificate().client()), "magpie test");
}

RT_TEST(TlsNames, AServerKnowsWhatItWasAskedFor) {
  TlsListener listener = TlsListener::bind("127.0.0.1:0", certificate().server());
  WaitGroup client;
  client.go([&] {
    TlsConn conn = TlsConn::client(net::TcpConn::connect(listener.local_address().to_string()),
                                   "some.test", trusting_anybody());
    conn.handshake();
    (void)support::read_all(conn);
  });
  TlsConn conn = listener.accept();
  conn.handshake();
  EXPECT_EQ(conn.server_name(), "some.test");
  EXPECT_FALSE(conn.peer_certificate().has_value());
  conn.shutdown_write();
  client.wait();
}

// To OpenSSL such a name is any below it.
RT_TEST(TlsNames, ANameThatBeginsWithADotIsNone) {
  Certificate below({.names = "DNS:a.localhost"});
  EchoServer server(below.server());
  const std::string address = "127.0.0.1:" + server.port;
  EXPECT_EQ(shown_to(server, "a.localhost", below.client()), "magpie test");
  EXPECT_THROW((void)TlsConn::client(net::TcpConn::connect(address), ".localhost", below.client()),
               std::invalid_argument);
  for (const std::string& host :
       {std::string(".localhost"), std::string("a.localhost\0.test", 17)}) {
    std::error_code error;
    (void)TlsConn::client(net::TcpConn::connect(address), host, below.client(), error);
    EXPECT_EQ(error, std::errc::invalid_argument) << host;
  }
}

RT_TEST(TlsReload, NewConnectionsGetTheNewCertificate) {
  Certificate files({.common_name = "old"}), fresh({.common_name = "new"});
  TlsServerConfig config(
      {.certificate_file = files.certificate, .key_file = files.key, .check_files_every = 0ms});
  EchoServer server(config);
  TlsConn begun = TlsConn::connect(server.address(), trusting_anybody());
  fresh.replace(files);
  EXPECT_EQ(shown_to(server, "localhost", trusting_anybody()), "old");
  config.reload();
  EXPECT_EQ(shown_to(server, "localhost", fresh.client()), "new");
  begun.write("x");  // goes on
  EXPECT_EQ(read_text(begun, 1), "x");
  // What cannot be read changes nothing.
  std::remove(files.key.c_str());
  EXPECT_EQ(error_of([&] { config.reload(); }), std::errc::no_such_file_or_directory);
  std::error_code error;
  config.reload(error);
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  EXPECT_EQ(shown_to(server, "localhost", fresh.client()), "new");
}

RT_TEST(TlsReload, FilesThatChangeAreNoticed) {
  Certificate files({.common_name = "old"}), fresh({.common_name = "new"}), other;
  std::atomic<int> told{0};
  EchoServer server(TlsServerConfig({.certificate_file = files.certificate,
                                     .key_file = files.key,
                                     .check_files_every = 1ms,
                                     .on_reload_error = [&](const std::exception&) { ++told; }}));
  EXPECT_EQ(shown_to(server, "localhost", trusting_anybody()), "old");
  fresh.replace(files);
  EXPECT_TRUE(
      eventually([&] { return shown_to(server, "localhost", trusting_anybody()) == "new"; }));
  // A key that does not fit (yet) is told of once, and the old pair stays.
  std::remove(files.key.c_str());
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(shown_to(server, "localhost", trusting_anybody()), "new");
    return told == 1;
  }));
  for (int i = 0; i < 5; ++i) {
    sleep_for(2ms);
    EXPECT_EQ(shown_to(server, "localhost", trusting_anybody()), "new");
  }
  EXPECT_EQ(told, 1);
  other.replace(files);
  EXPECT_TRUE(eventually(
      [&] { return shown_to(server, "localhost", trusting_anybody()) == "magpie test"; }));
}

RT_TEST(TlsReload, AReadingOfTheFilesThatBeganEarlierDoesNotReplaceALaterOne) {
  Certificate files({.common_name = "old"}), fresh({.common_name = "new"});
  TlsServerConfig config(
      {.certificate_file = files.certificate, .key_file = files.key, .check_files_every = 0ms});
  EchoServer server(config);
  // The slow reading has the old certificate, and waits for the old key.
  const std::string old_key = net::read_file(files.key);
  ASSERT_EQ(std::remove(files.key.c_str()), 0);
  ASSERT_EQ(mkfifo(files.key.c_str(), 0600), 0);
  std::error_code slow_error;
  PlainThread slow([&] { config.reload(slow_error); });
  int key = -1;
  ASSERT_TRUE(eventually(
      [&] { return (key = open(files.key.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0; }));
  fresh.replace(files);
  config.reload();
  EXPECT_EQ(shown_to(server, "localhost", trusting_anybody()), "new");
  EXPECT_EQ(write(key, old_key.data(), old_key.size()), static_cast<ssize_t>(old_key.size()));
  close(key);
  slow.join();
  EXPECT_FALSE(slow_error) << slow_error.message();
  EXPECT_EQ(shown_to(server, "localhost", trusting_anybody()), "new");
}

RT_TEST(TlsClientCertificates, AServerKnowsItsClients) {
  Certificate authority({.common_name = "authority", .names = "", .signs = true});
  Certificate ada({.common_name = "Ada",
                   .names = "DNS:ada.test,email:ada@one.test,IP:10.0.0.1,URI:spiffe://one/ada",
                   .signer = &authority});
  TlsListener listener = TlsListener::bind(
      "127.0.0.1:0", TlsServerConfig({.certificate_file = certificate().certificate,
                                      .key_file = certificate().key,
                                      .client_auth = TlsClientAuth::require,
                                      .client_ca_file = authority.certificate}));
  const std::string address = "localhost:" + std::to_string(listener.local_address().port());
  TlsClientConfig config({.ca_file = certificate().certificate, .identity = ada.identity()});
  for (bool resumed : {false, true}) {
    WaitGroup client;
    client.go([&] {
      TlsConn conn = TlsConn::connect(address, config);
      EXPECT_EQ(conn.peer_certificate()->dns_names, std::vector<std::string>{"localhost"});
      EXPECT_EQ(conn.peer_certificate()->ip_addresses, std::vector<std::string>{"127.0.0.1"});
      (void)support::read_all(conn);
    });
    TlsConn conn = listener.accept();
    conn.handshake();
    EXPECT_EQ(conn.was_resumed(), resumed);
    std::optional<net::TlsCertificate> peer = conn.peer_certificate();
    ASSERT_TRUE(peer.has_value());
    EXPECT_EQ(peer->subject, "CN=Ada");
    EXPECT_EQ(peer->issuer, "CN=authority");
    EXPECT_EQ(peer->common_name, "Ada");
    EXPECT_EQ(peer->dns_names, std::vector<std::string>{"ada.test"});
    EXPECT_EQ(peer->emails, std::vector<std::string>{"ada@one.test"});
    EXPECT_EQ(peer->ip_addresses, std::vector<std::string>{"10.0.0.1"});
    EXPECT_EQ(peer->uris, std::vector<std::string>{"spiffe://one/ada"});
    EXPECT_EQ(peer->sha256.size(), 64u);
    EXPECT_LT(peer->not_before, peer->not_after);
    conn.shutdown_write();
    client.wait();
  }
}

// With TLS 1.3 a client learns only by its first read that its certificate is not wanted.
bool is_let_in(const std::string& address, const TlsClientConfig& config) {
  return !error_of([&] {
            TlsConn conn = TlsConn::connect(address, config);
            conn.write("x");
            EXPECT_EQ(read_text(conn, 1), "x");
          }).has_value();
}

RT_TEST(TlsClientCertificates, OnlyThoseThatAreVouchedForAreLetIn) {
  Certificate authority({.common_name = "authority", .names = "", .signs = true});
  Certificate ada({.common_name = "Ada", .names = "", .signer = &authority});
  Certificate mallory({.common_name = "Mallory", .names = ""});
  auto asking = [&](TlsClientAuth how) {
    return TlsServerConfig({.certificate_file = certificate().certificate,
                            .key_file = certificate().key,
                            .client_auth = how,
                            .client_ca_file = authority.certificate});
  };
  auto as = [&](const net::TlsIdentity& identity) {
    return TlsClientConfig({.ca_file = certificate().certificate, .identity = identity});
  };
  EchoServer requires_one(asking(TlsClientAuth::require)), requests(asking(TlsClientAuth::request));
  EXPECT_TRUE(is_let_in(requires_one.address(), as(ada.identity())));
  EXPECT_FALSE(is_let_in(requires_one.address(), as(mallory.identity())));
  EXPECT_FALSE(is_let_in(requires_one.address(), as({})));
  EXPECT_TRUE(is_let_in(requests.address(), as(ada.identity())));
  EXPECT_FALSE(is_let_in(requests.address(), as(mallory.identity())));
  EXPECT_TRUE(is_let_in(requests.address(), as({})));
}

RT_TEST(TlsVersions, NoCipherWithoutForwardSecrecyIsUsed) {
  Certificate with_rsa({.rsa = true});
  EchoServer server(with_rsa.server());
  auto agrees_on = [&](const char* cipher) {
    bool agreed = false;
    (void)error_of([&] {
      RawTls client(net::TcpConn::connect("127.0.0.1:" + server.port), cipher);
      agreed = client.handshake();
    });
    return agreed;
  };
  EXPECT_FALSE(agrees_on("AES128-SHA"));
  EXPECT_FALSE(agrees_on("AES256-GCM-SHA384"));
  EXPECT_TRUE(agrees_on("ECDHE-RSA-AES128-GCM-SHA256"));
  TlsClientConfig client;
  STACK_OF(SSL_CIPHER)* offered = SSL_CTX_get_ciphers(client.state()->context.get());
  for (int i = 0; i < sk_SSL_CIPHER_num(offered); ++i) {
    std::string name = SSL_CIPHER_get_name(sk_SSL_CIPHER_value(offered, i));
    EXPECT_TRUE(name.starts_with("TLS_") || name.starts_with("ECDHE-")) << name;
  }
}

RT_TEST(TlsVersions, TheLeastVersionAndTheCiphersCanBeChosen) {
  TlsServerConfig::Options options{.certificate_file = certificate().certificate,
                                   .key_file = certificate().key};
  options.min_version = TlsVersion::tls_1_3;
  options.ciphersuites = "TLS_CHACHA20_POLY1305_SHA256";
  EchoServer server((TlsServerConfig(options)));
  EXPECT_EQ(TlsConn::connect(server.address(), certificate().client()).cipher(),
            "TLS_CHACHA20_POLY1305_SHA256");
  RawTls old(net::TcpConn::connect("127.0.0.1:" + server.port), "ECDHE+AESGCM");
  EXPECT_FALSE(old.handshake());
  options.ciphersuites = "no such thing";
  EXPECT_THROW(TlsServerConfig{options}, std::system_error);
  EXPECT_THROW(TlsClientConfig({.ciphers = "no such thing"}), std::system_error);
}

TEST(TlsTickets, KeysSealForATimeAndOpenForTwiceOfIt) {
  net::TicketKeys keys(1000);
  net::TicketKeys::Key first = *keys.to_seal(5000);
  EXPECT_EQ(keys.to_seal(5999)->name, first.name);
  EXPECT_FALSE(keys.is_old(first, 5999));
  net::TicketKeys::Key second = *keys.to_seal(6000);
  EXPECT_NE(second.name, first.name);
  EXPECT_NE(second.cipher, first.cipher);
  EXPECT_TRUE(keys.is_old(first, 6000));
  EXPECT_TRUE(keys.to_open(first.name, 6999).has_value());
  EXPECT_TRUE(keys.to_open(second.name, 6999).has_value());
  EXPECT_FALSE(keys.to_open(first.name, 7000).has_value());
  EXPECT_TRUE(keys.to_open(second.name, 7999).has_value());
  EXPECT_FALSE(keys.to_open(second.name, 100'000).has_value());  // nobody came for a long time
  net::TicketKeys::Key third = *keys.to_seal(100'000);
  keys.forget();
  EXPECT_FALSE(keys.to_open(third.name, 100'000).has_value());
}

RT_TEST(TlsTickets, AClientThatIsNotVouchedForAnyMoreIsNotResumed) {
  Certificate authority({.common_name = "authority", .names = "", .signs = true});
  Certificate ada({.common_name = "Ada", .names = "", .signer = &authority});
  Certificate trusted(
      {.common_name = "authority", .names = "", .signs = true});  // in whose file it is named
  authority.replace(trusted);
  TlsServerConfig config({.certificate_file = certificate().certificate,
                          .key_file = certificate().key,
                          .client_auth = TlsClientAuth::require,
                          .client_ca_file = trusted.certificate});
  EchoServer server(config);
  TlsClientConfig client({.ca_file = certificate().certificate, .identity = ada.identity()});
  EXPECT_TRUE(is_let_in(server.address(), client));
  EXPECT_TRUE(is_let_in(server.address(), client));
  Certificate other({.common_name = "other authority", .names = "", .signs = true});
  other.replace(trusted);
  config.reload();
  EXPECT_FALSE(is_let_in(server.address(), client));
}

RT_TEST(TlsTickets, AConnectionThatBeganBeforeAReloadGetsNoTicketForAfterIt) {
  Certificate authority({.common_name = "authority", .names = "", .signs = true});
  Certificate ada({.common_name = "Ada", .names = "", .signer = &authority});
  Certificate trusted({.common_name = "authority", .names = "", .signs = true});
  authority.replace(trusted);
  TlsServerConfig config({.certificate_file = certificate().certificate,
                          .key_file = certificate().key,
                          .client_auth = TlsClientAuth::require,
                          .client_ca_file = trusted.certificate});
  TlsListener listener = TlsListener::bind("127.0.0.1:0", config);
  const std::string address = "localhost:" + std::to_string(listener.local_address().port());
  TlsClientConfig client({.ca_file = certificate().certificate, .identity = ada.identity()});
  net::TcpConn raw = net::TcpConn::connect(address);
  TlsConn begun = listener.accept();
  Certificate other({.common_name = "other authority", .names = "", .signs = true});
  other.replace(trusted);
  config.reload();
  WaitGroup asking;
  asking.go([&] {
    TlsConn conn = TlsConn::client(std::move(raw), "localhost", client);
    conn.handshake();
    EXPECT_EQ(support::read_all(conn), "ticket");  // which has come before it
  });
  begun.handshake();  // with the certificates of its time
  begun.write("ticket");
  begun.shutdown_write();
  asking.wait();
  asking.go([&] {
    (void)error_of([&] {
      TlsConn conn = TlsConn::connect(address, client);
      (void)support::read_all(conn);
    });
  });
  TlsConn later = listener.accept();
  EXPECT_TRUE(error_of([&] { later.handshake(); }).has_value());
  later.close();
  asking.wait();
}

}  // namespace
}  // namespace magpie
