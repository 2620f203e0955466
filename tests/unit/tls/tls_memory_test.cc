// tls_memory_test.cc: what one connection can make us set aside, and for how long.
#include <gtest/gtest.h>
#include <magpie/net/tls.h>
#include <openssl/buffer.h>

#include <memory>
#include <string>
#include <utility>

#include "raw_tls.h"
#include "support/certificate.h"
#include "support/net_test.h"
#include "tls/hello_length.h"
#include "tls/session.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using net::HelloLength;
using net::TlsConn;
using support::certificate;
using support::error_of;
using support::RawTls;
using support::tcp_pair;

constexpr std::size_t kMost = 16 * 1024;
constexpr std::string_view kClientHello("\x01", 1);

std::string length_of(std::size_t size, int bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(size >> (8 * bytes) & 0xff);
  return text;
}
std::string record_of(char type, std::string_view contents) {
  return type + std::string("\x03\x01") + length_of(contents.size(), 2) + std::string(contents);
}
std::string handshake_record(std::string_view contents) { return record_of('\x16', contents); }

// Given in pieces of that size.
bool exceeds(std::string_view stream, std::size_t piece) {
  HelloLength length;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    if (length.exceeds(kMost, std::as_bytes(std::span(stream.substr(at, piece))))) return true;
  }
  return false;
}

TEST(TlsHelloLength, IsReadFromAnyPieces) {
  const std::string large = std::string(kClientHello) + length_of(kMost + 1, 3);
  const std::string small = std::string(kClientHello) + length_of(3, 3) + "abc";
  std::string split;  // a record for each byte, and empty ones
  for (char byte : large)
    split += handshake_record({}) + handshake_record(std::string_view(&byte, 1));
  const std::string changed = record_of('\x14', "\x01");
  for (std::size_t piece : {1, 2, 3, 5, 7, 1000}) {
    EXPECT_TRUE(exceeds(handshake_record(large), piece));
    EXPECT_TRUE(exceeds(split, piece));
    EXPECT_TRUE(exceeds(handshake_record(small) + handshake_record(large), piece));
    EXPECT_TRUE(exceeds(handshake_record(small + large), piece));
    EXPECT_TRUE(exceeds(handshake_record(small) + changed + handshake_record(large), piece));
    EXPECT_FALSE(exceeds(handshake_record(small) + handshake_record(small), piece));
    EXPECT_FALSE(exceeds(record_of('\x17', large), piece));  // encrypted
    EXPECT_FALSE(exceeds(handshake_record(std::string(kClientHello) + length_of(kMost, 3)), piece));
  }
}

// What a server makes of these bytes of a client.
std::optional<std::error_code> error_after(std::string_view bytes) {
  auto [client, accepted] = tcp_pair();
  TlsConn server = TlsConn::server(std::move(accepted), certificate().server());
  server.set_deadline(TlsConn::TimePoint::clock::now() + 200ms);
  client.write(bytes);
  return error_of([&] { server.handshake(); });
}

RT_TEST(TlsMemory, AClientThatAnnouncesALongMessageIsRefusedBeforeThereIsRoomForIt) {
  const std::string large = std::string(kClientHello) + length_of(131'000, 3);
  EXPECT_EQ(error_after(handshake_record(large)), std::errc::message_size);
  EXPECT_EQ(error_after(handshake_record(large.substr(0, 1)) + handshake_record(large.substr(1))),
            std::errc::message_size);
  // One that fits is waited for.
  const std::string usual = std::string(kClientHello) + length_of(kMost, 3);
  EXPECT_EQ(error_after(handshake_record(usual)), std::errc::timed_out);
}

std::size_t memory_of(BIO* buffer) {
  BUF_MEM* memory = nullptr;
  BIO_get_mem_ptr(buffer, &memory);
  return memory->max;
}

// A session as ours has them inside, and a peer that has shaken hands with it.
struct SessionPair {
  SessionPair() {
    auto [client, accepted] = tcp_pair();
    session =
        std::make_unique<TlsConn::Session>(std::move(accepted), certificate().server().state());
    peer.emplace(std::move(client));
    JoinHandle<void> shaking = spawn([this] { session->handshake(); });
    EXPECT_TRUE(peer->handshake());
    shaking.join();
  }
  std::size_t memory() const {
    return memory_of(SSL_get_rbio(session->ssl())) + memory_of(SSL_get_wbio(session->ssl()));
  }
  std::unique_ptr<TlsConn::Session> session;
  std::optional<RawTls> peer;
};

RT_TEST(TlsMemory, AConnectionThatWaitsKeepsLittle) {
  SessionPair pair;
  const std::string much(100'000, 'x');
  JoinHandle<void> saying = spawn([&] {
    pair.peer->say(much);
    pair.peer->send();
  });
  std::byte some[16 * 1024];
  for (std::size_t read = 0; read < much.size();) read += pair.session->read(some);
  saying.join();
  pair.session->set_deadline(TlsConn::Session::Side::reader,
                             TlsConn::TimePoint::clock::now() + 20ms);
  EXPECT_EQ(error_of([&] { (void)pair.session->read(some); }), std::errc::timed_out);
  EXPECT_LE(pair.memory(), 4u * 1024);
  EXPECT_EQ(error_of([&] { pair.session->wait_readable(); }), std::errc::timed_out);
  EXPECT_EQ(pair.memory(), 0u);
  // It goes on all the same.
  pair.session->set_deadline(TlsConn::Session::Side::reader, TlsConn::TimePoint::max());
  pair.peer->say("hello");
  pair.peer->send();
  EXPECT_EQ(pair.session->read(some), 5u);
}

}  // namespace
}  // namespace magpie
