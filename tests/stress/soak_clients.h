// soak_clients.h: what clients do to the servers of the soak, well and badly. Each way is one
// connection, or a few requests.
#pragma once

#include <gtest/gtest.h>
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "stress/soak_site.h"
#include "support/net_test.h"

namespace magpie::soak {

struct Clients {
  explicit Clients(const Site& where) : site(where) { hasty.set_timeout(3ms); }
  const Site& site;
  http::Client client{http::ClientOptions{.max_idle_per_host = 8, .tls = config}};
  http::Client hasty{http::ClientOptions{.tls = config}};

  static inline const net::TlsClientConfig config = support::certificate().client();
};

// One connection, and how it is to be talked over.
class Wire {
 public:
  Wire(const Clients& clients, Random& random) {
    if (random() % 3 == 0) {
      stream_ = std::make_unique<net::TlsConn>(
          net::TlsConn::connect(clients.site.tls_address(), Clients::config));
    } else {
      stream_ = std::make_unique<net::TcpConn>(net::TcpConn::connect(clients.site.plain_address()));
    }
  }
  net::Stream* operator->() { return stream_.get(); }
  net::Stream& operator*() { return *stream_; }

  // Of a response that tells its length. "ended": there is none.
  std::string body() {
    std::size_t end;
    while ((end = heard_.find("\r\n\r\n")) == std::string::npos) {
      if (!hear()) return "ended";
    }
    std::size_t at = heard_.find("Content-Length: ");
    if (at > end) return "no length: " + heard_;
    std::size_t size = std::stoul(heard_.substr(at + 16)), begin = end + 4;
    while (heard_.size() < begin + size) {
      if (!hear()) return "ended";
    }
    std::string body = heard_.substr(begin, size);
    heard_.erase(0, begin + size);
    return body;
  }
  bool hear() {
    char bytes[4000];
    std::size_t n = stream_->read(std::as_writable_bytes(std::span(bytes)));
    heard_.append(bytes, n);
    return n > 0;
  }

 private:
  std::unique_ptr<net::Stream> stream_;
  std::string heard_;
};

struct Asked {
  std::string request, answer;
};

inline Asked ask_for_text(Random& random, std::size_t most) {
  const std::size_t number = up_to(random, 1000), size = up_to(random, most);
  return {"GET /text/" + std::to_string(number) + "/" + std::to_string(size) +
              " HTTP/1.1\r\nHost: x\r\n\r\n",
          text_of(number, size)};
}

inline Asked post_text(Random& random, std::size_t most) {
  std::string text = text_of(up_to(random, 1000), up_to(random, most));
  const std::string path = random() % 2 == 0 ? "/whole" : "/echo";
  return {"POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(text.size()) + "\r\n\r\n" + text,
          text};
}

inline void expect_same(std::string_view got, std::string_view wanted, const char* what) {
  if (got == wanted) return;
  std::size_t at = static_cast<std::size_t>(
      std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end()).first - got.begin());
  ADD_FAILURE() << what << ": " << got.size() << " bytes instead of " << wanted.size()
                << ", different from " << at << " on: \"" << got.substr(at, 80)
                << "\" instead of \"" << wanted.substr(at, 80) << '"';
}

// For what the client itself spoils: it may fail, but not with a wrong answer.
template <class F>
void may_fail(F f) {
  try {
    f();
  } catch (const std::system_error&) {
  }
}

inline std::string root_of(const Clients& clients, Random& random) {
  return random() % 3 == 0 ? "https://" + clients.site.tls_address()
                           : "http://" + clients.site.plain_address();
}

inline void keep_alive(Clients& clients, Random& random) {
  const std::string root = root_of(clients, random);
  for (std::size_t left = 1 + up_to(random, 6); left > 0; --left) {
    const std::size_t number = up_to(random, 1000), size = up_to(random, 9000);
    const std::string text = text_of(number, size);
    const std::string path = std::to_string(number) + "/" + std::to_string(size);
    switch (random() % 5) {
      case 0:
        expect_same(clients.client.get(root + "/parts/" + path).body, text, "GET in parts");
        break;
      case 1:
        expect_same(clients.client.post(root + "/echo", text).body, text, "POST to echo");
        break;
      case 2:
        expect_same(clients.client.get(root + "/blocking").body, "blocked", "GET of blocking");
        break;
      default:
        expect_same(clients.client.get(root + "/text/" + path).body, text, "GET");
        break;
    }
  }
}

inline void pipelining(Clients& clients, Random& random) {
  Wire wire(clients, random);
  std::vector<Asked> all(1 + up_to(random, 20));
  std::string requests;
  for (Asked& one : all) {
    one = random() % 3 == 0 ? post_text(random, 300) : ask_for_text(random, 3000);
    requests += one.request;
  }
  wire->write(requests);
  for (const Asked& one : all) expect_same(wire.body(), one.answer, "pipelined");
}

inline void slow_sender(Clients& clients, Random& random) {
  Wire wire(clients, random);
  Asked one = random() % 2 == 0 ? post_text(random, 200) : ask_for_text(random, 100);
  for (std::string_view rest = one.request; !rest.empty();) {
    std::size_t n = std::min(rest.size(), 1 + up_to(random, 60));
    wire->write(rest.substr(0, n));
    rest.remove_prefix(n);
    sleep_for(a_while(random, 1500));
  }
  expect_same(wire.body(), one.answer, "sent slowly");
}

inline void large_bodies(Clients& clients, Random& random) {
  const std::string root = root_of(clients, random);
  const std::size_t number = up_to(random, 1000), size = 100'000 + up_to(random, 300'000);
  const std::string text = text_of(number, size);
  if (random() % 2 == 0) {
    expect_same(clients.client.post(root + "/whole", text).body, text, "a large body");
    return;
  }
  http::ReplyStream reply = clients.client.open(
      "GET", root + "/parts/" + std::to_string(number) + "/" + std::to_string(size));
  std::string got(random() % 3 == 0 ? size / 3 : size + 1, '\0');  // a third: left in the middle
  std::size_t at = 0;
  while (at < got.size()) {
    std::size_t n =
        reply.read(std::span(got).subspan(at, std::min<std::size_t>(got.size() - at, 5000)));
    if (n == 0) break;
    at += n;
  }
  expect_same(got.substr(0, at), text.substr(0, got.size()), "a large answer");
}

inline void echoed(Clients& clients, Random& random) {
  net::TcpConn conn = net::TcpConn::connect(clients.site.echo_address());
  for (std::size_t left = 1 + up_to(random, 8); left > 0; --left) {
    std::string text =
        text_of(up_to(random, 1000), 1 + up_to(random, random() % 8 == 0 ? 300'000 : 3000));
    JoinHandle<void> writer = spawn([&] { conn.write(text); });
    expect_same(support::read_text(conn, text.size()), text, "echoed");
  }
}

inline void vanishing(Clients& clients, Random& random) {
  net::TcpConn conn = net::TcpConn::connect(random() % 2 == 0 ? clients.site.plain_address()
                                                              : clients.site.tls_address());
  if (random() % 2 == 0) conn.close();
}

inline void resetting(Clients& clients, Random& random) {
  may_fail([&] {
    Wire wire(clients, random);
    std::string requests;
    for (std::size_t left = 1 + up_to(random, 8); left > 0; --left)
      requests += ask_for_text(random, 50'000).request;
    const bool hears = random() % 2 == 0;
    if (!hears) requests.resize(requests.size() - up_to(random, 30));
    wire->write(requests);
    if (hears) (void)wire.hear();
    if (random() % 2 == 0) sleep_for(a_while(random, 1000));
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(wire->native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once),
              0);
    wire->close();
  });
}

inline void half_a_request(Clients& clients, Random& random) {
  may_fail([&] {
    Wire wire(clients, random);
    std::string request = post_text(random, 5000).request;
    wire->write(request.substr(0, up_to(random, request.size() - 1)));
    if (random() % 2 == 0) sleep_for(a_while(random, 1000));
    if (random() % 2 == 0) return;
    wire->shutdown_write();
    while (wire.hear()) {
    }
  });
}

inline void garbage(Clients& clients, Random& random) {
  may_fail([&] {
    net::TcpConn conn = net::TcpConn::connect(random() % 2 == 0 ? clients.site.plain_address()
                                                                : clients.site.tls_address());
    std::string bytes(1 + up_to(random, 400), '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (random() % 2 == 0) bytes = "\x16\x03\x01\x02" + bytes;  // as TLS begins
    conn.write(bytes);
    conn.shutdown_write();
    (void)support::read_all(conn);
  });
}

inline constexpr const char* kWait = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n";

inline void out_of_time(Clients& clients, Random& random) {
  may_fail([&] {
    if (random() % 2 == 0) {
      expect_same(clients.hasty.get(root_of(clients, random) + "/wait").body, "waited",
                  "in a hurry");
      return;
    }
    Wire wire(clients, random);
    wire->set_deadline(a_while(random, 4000));
    wire->write(kWait);
    expect_same(wire.body(), "waited", "before a deadline");
  });
}

inline void closed_by_another(Clients& clients, Random& random) {
  may_fail([&] {
    Wire wire(clients, random);
    JoinHandle<void> closer = spawn([&wire, after = a_while(random, 3000)] {
      sleep_for(after);
      wire->close();
    });
    wire->write(kWait);
    expect_same(wire.body(), "waited", "before it is closed");
  });
}

// Cancelled by its time or by somebody; that closes the connection.
inline void cancelled(Clients& clients, Random& random) {
  may_fail([&] {
    Wire wire(clients, random);
    Context all = Context::background().with_timeout(a_while(random, 20'000) + 1ms);
    Context mine = all.with_cancel();
    struct Last {
      Context& context;
      ~Last() { context.cancel(); }
    };
    JoinHandle<void> closer = spawn([&wire, mine] {
      mine.done().recv();
      wire->close();
    });
    Last last{mine};
    Timer canceller = after_func(a_while(random, 10'000), [all] { all.cancel(); });
    if (random() % 2 == 0) canceller.stop();
    Asked one = ask_for_text(random, 2000);
    wire->write(one.request + kWait);
    expect_same(wire.body(), one.answer, "before it is cancelled");
    expect_same(wire.body(), "waited", "before it is cancelled");
  });
}

struct Behaviour {
  const char* name;
  void (*run)(Clients&, Random&);
};
inline constexpr Behaviour kBehaviours[] = {
    {"keep_alive", keep_alive},
    {"pipelining", pipelining},
    {"slow_sender", slow_sender},
    {"large_bodies", large_bodies},
    {"echoed", echoed},
    {"vanishing", vanishing},
    {"resetting", resetting},
    {"half_a_request", half_a_request},
    {"garbage", garbage},
    {"out_of_time", out_of_time},
    {"closed_by_another", closed_by_another},
    {"cancelled", cancelled},
};

}  // namespace magpie::soak
