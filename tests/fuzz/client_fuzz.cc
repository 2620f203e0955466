// client_fuzz.cc: any bytes as what a server answers to a client. libFuzzer calls it; see
// tests/CMakeLists.txt.
//
// The first byte says how the client asks. The rest is what the server says, a part for each
// request that it hears, divided by zero bytes; when there are no more parts it answers well. In a
// part
//   $      is a byte that stands for the request that is answered (0xf0 and its number); no other
//          byte is one
//   0x01   the client takes what was sent before more is sent
//   0x02   at the end: the connection stays open; without it the server ends it
// The client asks on when the server has said all of a part. So what the server says beyond an
// answer has arrived, and
//   - no answer has a byte that was said to another request;
//   - each request has one answer, or fails with an error that names it, in time;
//   - a request that may not be repeated is heard once;
//   - no answer is longer than it may be;
//   - at last a good server is answered well, and now and then: no goroutine or socket is left.

#include <linux/sockios.h>
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "fuzz/left.h"
#include "http/client_core.h"

namespace magpie::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMaxBody = 500;
constexpr auto kTime = 30ms;  // for servers that do not go on
constexpr auto kLong = 100s;  // for a good one
constexpr int kMaxRedirects = 3;

bool is_mark(char c) { return static_cast<unsigned char>(c) >= 0xf0; }

class Listener {
 public:
  Listener() {
    accepting_.go([this] {
      try {
        for (;;) talking_.go([this, conn = listener_.accept()]() mutable { talk(conn); });
      } catch (const std::system_error&) {
      }
    });
  }
  ~Listener() {
    listener_.close();
    accepting_.wait();
  }

  std::string address() const { return listener_.local_address().to_string(); }

  // From now on the server says this, to requests of this run.
  void play(std::string_view script, int run) {
    std::lock_guard hold(lock_);
    script_ = script;
    run_ = run;
    heard_ = {};
  }
  // How often that request of the run was heard.
  int heard(int number) {
    std::lock_guard hold(lock_);
    return heard_[static_cast<std::size_t>(number)];
  }
  bool is_talking() const { return talkers_ > 0; }
  void wait_for_talkers() { talking_.wait(); }

 private:
  // Empty at the end.
  static std::string hear_head(net::UnixConn& conn) {
    std::string heard;
    char some[2000];
    for (;;) {
      std::size_t n = conn.read(std::as_writable_bytes(std::span(some)));
      if (n == 0) return {};
      heard.append(some, n);
      std::size_t end = heard.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      // The client sends no body but "body", if it announces one.
      if (heard.find("Content-Length: 4") == std::string::npos || heard.size() >= end + 8)
        return heard;
    }
  }

  static int number_after(std::string_view head, std::string_view name) {
    return std::atoi(std::string(head.substr(head.find(name) + name.size(), 9)).c_str());
  }

  // A request that the client has given up may be heard late, in a later run.
  std::string next_part(int number, int run) {
    std::lock_guard hold(lock_);
    if (run != run_) return {};
    ++heard_[static_cast<std::size_t>(number)];
    if (script_.empty()) return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ngood$\x02";
    std::size_t end = std::min(script_.find('\0'), script_.size());
    std::string part(script_.substr(0, end));
    script_.remove_prefix(std::min(end + 1, script_.size()));
    return part;
  }

  void talk(net::UnixConn& conn) {
    try {
      for (;;) {
        std::string head = hear_head(conn);
        if (head.empty()) break;
        struct Talking {
          std::atomic<int>& talkers;
          ~Talking() { --talkers; }
        } talking{talkers_};
        ++talkers_;
        const int number = number_after(head, "X-Number: ");
        std::string part = next_part(number, number_after(head, "X-Run: "));
        const bool stays = part.ends_with('\x02');
        if (stays) part.pop_back();
        for (char& c : part) {
          if (is_mark(c)) c = 'x';
          if (c == '$') c = static_cast<char>(0xf0 | number);
        }
        say(conn, part);
        if (!stays) conn.shutdown_write();
      }
    } catch (const std::system_error&) {  // the client has gone
    }
  }

  static void say(net::UnixConn& conn, std::string_view part) {
    while (!part.empty()) {
      std::size_t size = std::min(part.find('\x01'), part.size());
      if (size > 0) conn.write(part.substr(0, size));
      part.remove_prefix(std::min(size + 1, part.size()));
      if (!part.empty()) wait_until_taken(conn.native_handle());
    }
  }

  static void wait_until_taken(int fd) {
    const auto limit = std::chrono::steady_clock::now() + kTime;
    for (int left = 1; std::chrono::steady_clock::now() < limit;) {
      if (::ioctl(fd, SIOCOUTQ, &left) != 0 || left == 0) return;
      yield();
    }
  }

  net::UnixListener listener_ =
      net::UnixListener::bind("@magpie-fuzz-client-" + std::to_string(::getpid()));
  Mutex lock_;
  std::string_view script_;
  int run_ = 0;
  std::array<int, 10> heard_{};  // by number
  std::atomic<int> talkers_{0};  // that have heard a request and not said all
  WaitGroup accepting_, talking_;
};

class ToListener final : public http::Dialer {
 public:
  explicit ToListener(std::string address) : address_(std::move(address)) {}
  std::unique_ptr<net::Stream> dial(const http::Url&, detail::DeadlineNs) override {
    return std::make_unique<net::UnixConn>(net::UnixConn::connect(address_));
  }

 private:
  const std::string address_;
};

class World {
 public:
  World() {
    listener_.play({}, run_);
    {
      http::ClientCore core({.timeout = kLong}, dialer_);
      ask(core, "GET", 1, true);
      core.pool->clear();
    }
    listener_.wait_for_talkers();
    wait_for_goroutines(2);  // this one, and the one that accepts
    before_ = Left();
  }

  void run(std::string_view input) {
    if (input.empty()) return;
    const auto how = static_cast<std::uint8_t>(input[0]);
    constexpr const char* kMethods[] = {"GET", "HEAD", "POST", "GET"};
    const char* method = kMethods[how & 3];
    const bool redirects = (how & 4) != 0;
    const int requests = 1 + (how >> 4) % 4;
    {
      http::ClientCore core({.timeout = kTime,
                             .max_redirects = redirects ? kMaxRedirects : 0,
                             .max_header_bytes = 600,
                             .max_body_bytes = kMaxBody},
                            dialer_);
      listener_.play(input.substr(1), ++run_);
      const int most = (redirects ? 1 + kMaxRedirects : 1) * (method[0] == 'P' ? 1 : 2);
      for (int i = 1; i <= requests; ++i) {
        ask(core, method, i, false);
        wait_for_the_server();
        // A redirected POST may become a GET, which may be repeated.
        if (listener_.heard(i) > most * (redirects ? 2 : 1)) fail("a request was repeated");
      }
      listener_.play({}, ++run_);
      core.timeout_ns.store(detail::whole_ns(kLong), std::memory_order_relaxed);
      ask(core, "GET", 9, true);
      wait_for_the_server();
      core.pool->clear();
    }
    if (++inputs_ % 256 == 0) look_around();
  }

  void look_around() {
    listener_.wait_for_talkers();
    expect_left(before_);
  }

 private:
  void wait_for_the_server() {
    while (listener_.is_talking()) yield();
  }

  void ask(http::ClientCore& core, const char* method, int number, bool has_to_succeed) {
    const http::Headers headers{{"X-Number", std::to_string(number)},
                                {"X-Run", std::to_string(run_)}};
    const std::string_view body = method[0] == 'P' ? "body" : "";
    const std::string url = "http://host/path";
    try {
      http::Reply reply = core.request({method, headers, body, nullptr}, url, core.limits());
      if (reply.body.size() > kMaxBody) fail("an answer is too long");
      if (method[0] == 'H' && !reply.body.empty()) fail("an answer to HEAD has a body");
      check_marks(reply.body, number);
      for (const auto& [name, value] : reply.headers) check_marks(value, number);
      if (has_to_succeed && (reply.status != 200 || !reply.body.starts_with("good")))
        fail("a good server was not understood");
    } catch (const std::system_error& error) {
      check_error(error.what(), method, has_to_succeed);
    } catch (const http::ProtocolError& error) {
      check_error(error.what(), method, has_to_succeed);
    }
  }

  static void check_marks(std::string_view text, int number) {
    for (char c : text) {
      if (is_mark(c) && (c & 0xf) != number)
        fail("an answer to request " + std::to_string(c & 0xf) + " was given to request " +
             std::to_string(number));
    }
  }

  static void check_error(std::string_view text, std::string_view method, bool has_to_succeed) {
    if (has_to_succeed) fail("a good server was not understood: " + std::string(text));
    if (!text.starts_with("magpie: " + std::string(method) + " http") &&
        !text.starts_with("magpie: GET http"))
      fail("an error does not name its request: " + std::string(text));
  }

  Listener listener_;
  std::shared_ptr<http::Dialer> dialer_ = std::make_shared<ToListener>(listener_.address());
  Left before_;
  int run_ = 0;
  std::size_t inputs_ = 0;
};

}  // namespace
}  // namespace magpie::fuzz

#include "fuzz/fuzz_main.h"
