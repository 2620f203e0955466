// tls_fuzz.cc: any bytes as what a TLS peer does. libFuzzer calls it; see tests/CMakeLists.txt.
//
// The first byte says which side is ours. An input of a peer that begins with 'R' is sent as it is,
// instead of a handshake. Otherwise both agree, and each byte is a step of a peer that OpenSSL
// plays, with some freedom:
//   d, D   says a few bytes, or many              k   changes its keys, and wants new ones from us
//   s      sends what it has said so far          x   sends it with one bit changed
//   h      sends half of it                       !   sends the next byte as it is
//   w      we write to it                         f   says farewell
// At the end it closes, and
//   - what we read is the beginning of what it said, and all of it if nothing was changed and it
//     did not only change keys;
//   - we read an end if it said farewell, and an error if it did not: never an end of what was cut
//     off;
//   - nobody waits for long. Now and then: no goroutine or socket is left.

#include <magpie/magpie.h>
#include <magpie/net.h>
#include <magpie/net/tls.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "fuzz/left.h"
#include "support/certificate.h"
#include "unit/tls/raw_tls.h"

namespace magpie::fuzz {
namespace {

using namespace std::chrono_literals;
using net::TlsConn;
using support::certificate;
using support::RawTls;

constexpr auto kLimit = 100s;

// OpenSSL cleans up when the program exits, and then knows nothing of threads that end later. So it
// begins before the runtime, and is cleaned up after it.
[[maybe_unused]] const int openssl_begins = OPENSSL_init_ssl(0, nullptr);

class World {
 public:
  World() {
    run("sdksf");
    run("cdksf");
    wait_for_goroutines(1);  // this one
    before_ = Left();
  }

  void run(std::string_view input) {
    if (input.empty()) return;
    meet(input);
    if (++inputs_ % 64 == 0) look_around();
  }

  void look_around() { expect_left(before_); }

 private:
  void meet(std::string_view input) {
    const bool ours_is_server = input[0] != 'c';
    input.remove_prefix(1);
    net::TcpConn theirs = net::TcpConn::connect(listener_.local_address().to_string());
    net::TcpConn accepted = listener_.accept();
    theirs.set_deadline(kLimit);
    accepted.set_deadline(kLimit);
    TlsConn ours = ours_is_server ? TlsConn::server(std::move(accepted), server_)
                                  : TlsConn::client(std::move(accepted), "localhost", client_);
    ours.set_deadline(kLimit);
    if (input.starts_with('R')) {
      say_nonsense(ours, theirs, input.substr(1));
    } else if (ours_is_server) {
      talk(ours, std::make_unique<RawTls>(std::move(theirs)), input);
    } else {
      talk(ours, std::make_unique<RawTls>(std::move(theirs), certificate()), input);
    }
  }

  struct Heard {
    std::string text;
    bool ended = false;  // by a farewell
  };

  static Heard hear(TlsConn& conn) {
    Heard heard;
    try {
      std::byte some[300];
      while (std::size_t count = conn.read(some))
        heard.text.append(reinterpret_cast<const char*>(some), count);
      heard.ended = true;
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::timed_out) fail("a read takes too long");
    }
    (void)conn.check_idle();
    conn.close();
    return heard;
  }

  static void say_nonsense(TlsConn& ours, net::TcpConn& theirs, std::string_view bytes) {
    JoinHandle<Heard> hearing = spawn([&] { return hear(ours); });
    try {
      theirs.write(bytes);
      theirs.shutdown_write();
      std::byte some[1000];
      while (theirs.read(some) > 0) {
      }
    } catch (const std::system_error&) {
    }
    Heard heard = hearing.join();
    if (heard.ended || !heard.text.empty()) fail("nonsense was understood");
  }

  static void talk(TlsConn& ours, std::unique_ptr<RawTls> peer, std::string_view steps) {
    JoinHandle<bool> shaking = spawn([&] { return peer->handshake(); });
    ours.handshake();
    if (!shaking.join()) fail("no handshake");
    JoinHandle<Heard> hearing = spawn([&] { return hear(ours); });
    std::string said;
    bool is_good = true, has_ended = false;
    int idle_steps = 0, most_idle_steps = 0;
    try {
      for (; !steps.empty() && !has_ended; steps.remove_prefix(1)) {
        switch (steps[0]) {
          case 'd':
          case 'D': {
            std::string text(steps[0] == 'd' ? 3 : 20'000,
                             static_cast<char>('a' + said.size() % 26));
            peer->say(text);
            said += text;
            idle_steps = 0;
            break;
          }
          case 'k':
            peer->update_keys();
            most_idle_steps = std::max(most_idle_steps, ++idle_steps);
            break;
          case 's':
            peer->send();
            break;
          case 'x':
            if (peer->send_changed()) is_good = false;
            break;
          case 'h':
            if (peer->send_half()) is_good = false;
            break;
          case '!':
            if (steps.size() > 1) {
              steps.remove_prefix(1);
              peer->conn().write(steps.substr(0, 1));
              is_good = false;
            }
            break;
          case 'w':
            ours.write("from us");
            break;
          case 'f':
            peer->say_farewell();
            has_ended = true;
            break;
          default:
            break;
        }
      }
      peer->send();
      peer->conn().shutdown_write();
      std::byte some[1000];
      while (peer->conn().read(some) > 0) {
      }
    } catch (const std::system_error&) {
      // We may have had enough of it, and closed.
    }
    Heard heard = hearing.join();
    if (!said.starts_with(heard.text)) fail("heard what was not said");
    if (heard.ended && !has_ended) fail("the end of a stream that was cut off");
    if (is_good && most_idle_steps <= 20 && (heard.text != said || heard.ended != has_ended))
      fail("not all was heard");
  }

  net::TcpListener listener_ = net::TcpListener::bind("127.0.0.1:0");
  const net::TlsServerConfig server_ = certificate().server();
  const net::TlsClientConfig client_ = certificate().client();
  Left before_;
  std::size_t inputs_ = 0;
};

}  // namespace
}  // namespace magpie::fuzz

#include "fuzz/fuzz_main.h"
