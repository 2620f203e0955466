// clients.cc: the clients of tests/hostile/run: attackers of one kind, or a good client that takes
// the time of each answer.
//
//   clients KIND COUNT SECONDS HTTP_PORT HTTPS_PORT ADDRESS
//
// They connect from that address, by which tests/hostile/run knows them: 127.0.0.2 or another one
// of the machine itself. Attackers are goroutines. The good client is two plain threads, so that
// nothing but the server and the machine makes it wait.
#include <arpa/inet.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

using namespace magpie;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

struct Ports {
  int plain, secure;
};

void check(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in address(const char* host, int port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host, &result.sin_addr);
  return result;
}

// A socket that will connect from that address. The system chooses the port then, and not now:
// there are many more to choose from.
int socket_of(const char* host, int flags) {
  const int result = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  check(result >= 0, "socket");
  const int one = 1;
  ::setsockopt(result, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
  const sockaddr_in mine = address(host, 0);
  check(::bind(result, reinterpret_cast<const sockaddr*>(&mine), sizeof mine) == 0, "bind");
  return result;
}

// ---- attackers

// The end of the attack is the end of the context: all waits fail then.
struct Attack {
  const char* from;
  Ports ports;
  Context context;
  std::atomic<long> connections{0};  // counters: only added to, and printed at the end
  std::atomic<long> answers{0};

  net::TcpConn connect(int port) {
    struct Socket {
      const int number;
      bool kept = false;
      ~Socket() {
        if (!kept) ::close(number);
      }
    } socket{socket_of(from, SOCK_NONBLOCK)};
    begin_to_connect(socket.number, port);
    net::wait_writable(socket.number, context);
    net::TcpConn conn = net::TcpConn::adopt(socket.number);  // throws if it was refused
    socket.kept = true;
    connections.fetch_add(1, std::memory_order_relaxed);
    return conn;
  }
  [[gnu::noinline]] static void begin_to_connect(int socket, int port) {
    const sockaddr_in its = address("127.0.0.1", port);
    const int result = ::connect(socket, reinterpret_cast<const sockaddr*>(&its), sizeof its);
    check(result == 0 || errno == EINPROGRESS, "connect");
  }
  void wait_for_end(net::TcpConn& conn) {
    std::byte some[4096];
    while (conn.read(some, context) != 0) {
    }
  }
};

void take_little(const net::TcpConn& conn) {
  int bytes = 1;  // the system makes it its least
  ::setsockopt(conn.native_handle(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

[[noreturn]] void drip(Attack& attack, net::TcpConn& conn) {
  for (;;) {
    conn.write("x", attack.context);
    sleep_for(500ms, attack.context);
  }
}

void slow_head(Attack& attack) {
  net::TcpConn conn = attack.connect(attack.ports.plain);
  conn.write("GET /echo/a HTTP/1.1\r\nHost: x\r\nX: ", attack.context);
  drip(attack, conn);
}

void slow_body(Attack& attack) {
  net::TcpConn conn = attack.connect(attack.ports.plain);
  conn.write("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", attack.context);
  drip(attack, conn);
}

void slow_reader(Attack& attack) {
  net::TcpConn conn = attack.connect(attack.ports.plain);
  take_little(conn);
  conn.write("GET /large HTTP/1.1\r\nHost: x\r\n\r\n", attack.context);
  std::byte some[64];
  while (conn.read(some, attack.context) != 0) sleep_for(500ms, attack.context);
}

void silent(Attack& attack) {
  net::TcpConn conn = attack.connect(attack.ports.plain);
  attack.wait_for_end(conn);
}

void silent_tls(Attack& attack) {
  net::TcpConn conn = attack.connect(attack.ports.secure);
  conn.write("\x16\x03\x01", attack.context);  // as a handshake begins
  attack.wait_for_end(conn);
}

// Asks once, and nothing more.
void idle(Attack& attack) {
  net::TcpConn conn = attack.connect(attack.ports.plain);
  conn.write("GET /echo/a HTTP/1.1\r\nHost: x\r\n\r\n", attack.context);
  attack.wait_for_end(conn);
}

// A TLS client over memory, which can do what ours cannot. What it says is kept until send().
class Tls {
 public:
  Tls(Attack& attack, net::TcpConn& conn) : attack_(attack), conn_(conn), ssl_(SSL_new(context())) {
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_connect_state(ssl_.get());
    while (SSL_do_handshake(ssl_.get()) != 1) {
      send();
      std::byte some[4096];
      const std::size_t count = conn_.read(some, attack_.context);
      if (count == 0) throw std::runtime_error("the server ended the handshake");
      BIO_write(in_, some, static_cast<int>(count));
    }
    send();
  }
  void update_keys() {
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED);
    (void)SSL_do_handshake(ssl_.get());
  }
  void say(std::string_view text) {
    (void)SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
  }
  void send() {
    std::string bytes(static_cast<std::size_t>(BIO_pending(out_)), '\0');
    if (bytes.empty()) return;
    BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    conn_.write(bytes, attack_.context);
  }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  static SSL_CTX* context() {
    static SSL_CTX* const one = SSL_CTX_new(TLS_client_method());
    return one;
  }

  Attack& attack_;
  net::TcpConn& conn_;
  BIO* in_ = BIO_new(BIO_s_mem());   // owned by ssl_
  BIO* out_ = BIO_new(BIO_s_mem());  //
  std::unique_ptr<SSL, Free> ssl_;
};

// As many KeyUpdates as can be sent, each of which asks for an answer that is never read. Without
// bytes in between the server would notice at once.
void key_update(Attack& attack) {
  net::TcpConn conn = attack.connect(attack.ports.secure);
  take_little(conn);
  Tls tls(attack, conn);
  tls.say("GET /echo/a HTTP/1.1\r\nHost: x\r\nX: ");
  for (;;) {
    for (int i = 0; i < 30; ++i) tls.update_keys();
    tls.say("x");
    tls.send();
  }
}

// The same without bytes in between: each connection ends soon, and the next begins.
void bare_key_update(Attack& attack) {
  net::TcpConn conn = attack.connect(attack.ports.secure);
  Tls tls(attack, conn);
  for (;;) {
    for (int i = 0; i < 30; ++i) tls.update_keys();
    tls.send();
  }
}

// Reads answers of `size` bytes in all, and looks at the last.
void read_answers(Attack& attack, net::TcpConn& conn, std::size_t size, std::string_view last) {
  std::string answers(size, '\0');
  conn.read_exact(std::as_writable_bytes(std::span(answers)), attack.context);
  if (!answers.ends_with(last)) {
    std::fprintf(stderr, "a wrong answer: %s\n", answers.substr(size - last.size()).c_str());
    std::exit(1);
  }
}

// `at_once` requests under way at any time, all answered alike but for the last. A new connection
// every few seconds, as no limit of the server asks for one.
void pipeline(Attack& attack, std::size_t at_once) {
  net::TcpConn conn = attack.connect(attack.ports.plain);
  const auto request = [](std::string_view text) {
    return "GET /echo/" + std::string(text) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  };
  conn.write(request("a"), attack.context);
  std::string one(4096, '\0');
  one.resize(conn.read(std::as_writable_bytes(std::span(one)), attack.context));
  std::string requests;
  for (std::size_t i = 1; i < at_once; ++i) requests += request("a");
  requests += request("b");
  for (const auto end = Clock::now() + 5s; Clock::now() < end;) {
    WaitGroup writer;
    writer.go([&] {
      std::error_code ended;
      conn.write(requests, attack.context, ended);
    });
    struct Joined {
      net::TcpConn& conn;
      WaitGroup& group;
      ~Joined() {
        if (std::uncaught_exceptions() != 0) conn.close();
        group.wait();
      }
    } joined{conn, writer};
    read_answers(attack, conn, at_once * one.size(), "\r\n\r\nb");
    attack.answers.fetch_add(static_cast<long>(at_once), std::memory_order_relaxed);
  }
}
void pipelining(Attack& attack) { pipeline(attack, 64); }
void pipelining_much(Attack& attack) { pipeline(attack, 1700); }

void resets(Attack& attack) {
  net::TcpConn conn = attack.connect(attack.ports.plain);
  conn.write("GET /large HTTP/1.1\r\nHost: x\r\n\r\nGET /echo/a HTTP/1.1\r\nHo", attack.context);
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(conn.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

struct Kind {
  std::string_view name;
  void (*run)(Attack&);  // one connection
};
constexpr Kind kKinds[] = {
    {"slow_head", slow_head},     {"slow_body", slow_body},
    {"slow_reader", slow_reader}, {"silent", silent},
    {"silent_tls", silent_tls},   {"idle", idle},
    {"key_update", key_update},   {"bare_key_update", bare_key_update},
    {"pipelining", pipelining},   {"pipelining_much", pipelining_much},
    {"resets", resets},
};

void attack_with(const Kind& kind, long count, std::chrono::seconds length, Ports ports,
                 const char* from) {
  run(Options{.procs = 2}, [&] {
    Attack attack{
        .from = from, .ports = ports, .context = Context::background().with_timeout(length)};
    WaitGroup all;
    for (long i = 0; i < count; ++i) {
      all.go([&] {
        while (!attack.context.cancelled()) {
          try {
            kind.run(attack);
          } catch (const std::exception&) {  // the server ended it, or time is up
          }
          std::error_code over;
          sleep_for(20ms, attack.context, over);
        }
      });
    }
    all.wait();
    std::printf("connections=%ld answers=%ld\n", attack.connections.load(), attack.answers.load());
  });
}

// ---- the good client

class GoodConnection {
 public:
  GoodConnection(const char* from, int port, SSL_CTX* tls) : socket_(socket_of(from, 0)) {
    const int one = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const timeval patience{.tv_sec = 100, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const sockaddr_in its = address("127.0.0.1", port);
    check(::connect(socket_, reinterpret_cast<const sockaddr*>(&its), sizeof its) == 0, "connect");
    if (tls == nullptr) return;
    ssl_.reset(SSL_new(tls));
    SSL_set_fd(ssl_.get(), socket_);
    check(SSL_connect(ssl_.get()) == 1, "TLS handshake");
  }
  ~GoodConnection() { ::close(socket_); }
  GoodConnection(const GoodConnection&) = delete;
  GoodConnection& operator=(const GoodConnection&) = delete;

  void ask(long number) {
    const std::string text = std::to_string(number);
    write("GET /good/" + text + " HTTP/1.1\r\nHost: x\r\n\r\n");
    std::string answer;
    while (!answer.ends_with("\r\n\r\n" + text)) {
      char some[1000];
      const long count =
          ssl_ ? SSL_read(ssl_.get(), some, sizeof some) : ::recv(socket_, some, sizeof some, 0);
      check(count > 0, "read");
      answer.append(some, static_cast<std::size_t>(count));
    }
    check(answer.starts_with("HTTP/1.1 200 "), "status");
  }

 private:
  void write(const std::string& text) {
    const long size = static_cast<long>(text.size());
    const long sent = ssl_ ? SSL_write(ssl_.get(), text.data(), static_cast<int>(size))
                           : ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    check(sent == size, "write");
  }

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  int socket_;
  std::unique_ptr<SSL, Free> ssl_;
};

// Asks every other millisecond, over one connection or a new one each time.
class GoodClient {
 public:
  GoodClient(const char* from, int port, SSL_CTX* tls) : from_(from), port_(port), tls_(tls) {}
  void run(bool keeps, std::chrono::seconds length) {
    std::unique_ptr<GoodConnection> conn;
    for (const auto end = Clock::now() + length; Clock::now() < end;) {
      const auto began = Clock::now();
      ++asked_;
      try {
        if (!conn) conn = std::make_unique<GoodConnection>(from_, port_, tls_);
        conn->ask(asked_);
        took_.push_back(Clock::now() - began);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "a good client: %s\n", error.what());
        conn.reset();
      }
      if (!keeps) conn.reset();
      std::this_thread::sleep_for(2ms);
    }
  }
  void print(const char* name) {
    std::sort(took_.begin(), took_.end());
    const auto at = [&](std::size_t thousandths) {
      if (took_.empty()) return 0.0;
      const std::size_t index = std::min(took_.size() - 1, took_.size() * thousandths / 1000);
      return std::chrono::duration<double, std::milli>(took_[index]).count();
    };
    std::printf("%s asked=%ld answered=%zu p50=%.2f p99=%.2f max=%.2f\n", name, asked_,
                took_.size(), at(500), at(990), at(1000));
  }

 private:
  const char* const from_;
  const int port_;
  SSL_CTX* const tls_;
  long asked_ = 0;
  std::vector<Clock::duration> took_;
};

void ask_politely(bool over_tls, std::chrono::seconds length, Ports ports, const char* from) {
  SSL_CTX* const tls = over_tls ? SSL_CTX_new(TLS_client_method()) : nullptr;
  const int port = over_tls ? ports.secure : ports.plain;
  GoodClient kept(from, port, tls), fresh(from, port, tls);
  std::thread one([&] { kept.run(true, length); });
  fresh.run(false, length);
  one.join();
  kept.print("kept");
  fresh.print("fresh");
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets whose other end may be gone
  const std::string_view kind = argc == 7 ? argv[1] : "";
  const auto number = [&](int at) { return std::atoi(argv[at]); };
  if (kind == "good" || kind == "good_tls") {
    ask_politely(kind == "good_tls", std::chrono::seconds(number(3)), {number(4), number(5)},
                 argv[6]);
    return 0;
  }
  for (const Kind& one : kKinds) {
    if (one.name != kind) continue;
    attack_with(one, number(2), std::chrono::seconds(number(3)), {number(4), number(5)}, argv[6]);
    return 0;
  }
  std::fprintf(stderr,
               "usage: %s KIND COUNT SECONDS HTTP_PORT HTTPS_PORT ADDRESS\nkinds: good good_tls",
               argv[0]);
  for (const Kind& one : kKinds) std::fprintf(stderr, " %s", one.name.data());
  std::fputs("\n", stderr);
  return 2;
}
