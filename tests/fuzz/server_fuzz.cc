// server_fuzz.cc: any bytes as what a client sends to a server. libFuzzer calls it; see
// tests/CMakeLists.txt.
//
// The runtime runs beside libFuzzer's thread, with two servers that live as long as the program:
// what one connection leaves in buffers that are used again meets the next one. Three bytes say how
// the others are sent (Plan): by which client, in which pieces, with which pauses. The answers are
// read to the end, and
//   - they are well-formed responses, one for each request that a handler has seen, with its status
//     and what it echoed; one more may refuse what was no request, and ends the connection;
//   - a body has the length that was announced, however it is read;
//   - requests do not depend on how their bytes arrive: what came in pieces is sent again as a
//     whole;
//   - both sides are done within a limit. Now and then: no goroutine, timer or descriptor is left,
//     and a good request is answered.

#include <linux/sockios.h>
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "fuzz/server_answers.h"
#include "fuzz/server_routes.h"

namespace magpie::fuzz {
namespace {

constexpr auto kLimit = 100s;  // for anything that has to happen

// ---- the client

enum class Manner : std::uint8_t {
  ends,            // says that it has sent all, and reads the answers
  waits,           // the same, after the server has taken all
  vanishes,        // reads nothing
  reads_a_little,  // and goes, with answers on their way
  stays,           // until the server's time is up: of an impatient server
};

enum class Pause : std::uint8_t { none, yield, until_taken, sleep };

struct Plan {
  Manner manner;
  Pause pause;
  std::uint8_t pieces;  // 0: one
  std::string_view bytes;

  // The manners that take time are rare.
  static Plan of(std::string_view input) {
    constexpr Manner manners[] = {Manner::ends,  Manner::ends,     Manner::ends,
                                  Manner::waits, Manner::vanishes, Manner::reads_a_little};
    const auto how = static_cast<std::uint8_t>(input[0]),
               pause = static_cast<std::uint8_t>(input[2]);
    Plan plan{manners[how % 6], static_cast<Pause>(pause % 3), static_cast<std::uint8_t>(input[1]),
              input.substr(3)};
    if (how == 'S') plan.manner = Manner::stays;
    if (how == 'S' && pause == 'S') plan.pause = Pause::sleep;
    return plan;
  }
};

bool is_end(const std::system_error& error) {
  return error.code() == std::errc::connection_reset || error.code() == std::errc::broken_pipe ||
         error.code() == std::errc::not_connected;
}

void wait_until_taken(int fd, int looks) {
  for (int left = 1; looks > 0; --looks) {
    if (::ioctl(fd, SIOCOUTQ, &left) != 0 || left == 0) return;
    yield();
  }
}

void send(net::Stream& stream, const Plan& plan) {
  std::string_view rest = plan.bytes;
  for (std::size_t i = 0; !rest.empty(); ++i) {
    std::size_t size = rest.size();
    if (plan.pieces != 0 && i < 24) size = std::min(size, 1 + plan.pieces * (i + 1) % 97);
    stream.write(rest.substr(0, size));
    rest.remove_prefix(size);
    if (plan.pause == Pause::yield) yield();
    if (plan.pause == Pause::until_taken) wait_until_taken(stream.native_handle(), 50);
    if (plan.pause == Pause::sleep && i < 4) sleep_for(4ms);
  }
  if (plan.manner == Manner::waits) {
    wait_until_taken(stream.native_handle(), 50);
    for (int i = 0; i < 20; ++i) yield();
  }
  if (plan.manner != Manner::vanishes && plan.manner != Manner::stays) stream.shutdown_write();
}

std::string hear(net::Stream& stream, std::size_t at_most) {
  std::string heard;
  char bytes[4096];
  try {
    while (heard.size() < at_most) {
      std::size_t n = stream.read(std::as_writable_bytes(std::span(bytes)));
      if (n == 0) break;
      heard.append(bytes, n);
    }
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::timed_out) fail("the server neither answers nor closes");
    if (!is_end(error)) throw;
  }
  return heard;
}

// What a client hears from one connection, in `seen` what the server has understood.
std::string talk(http::Server& server, net::UnixListener& listener, const Plan& plan) {
  seen.clear();
  net::UnixConn mine = net::UnixConn::connect(listener.local_address().to_string());
  Chan<void> served(1);
  go([&server, served, its = std::make_unique<net::UnixConn>(listener.accept())]() mutable {
    server.serve_connection(std::move(its));
    served.send();
  });
  mine.set_deadline(kLimit);
  const bool all = plan.manner != Manner::vanishes && plan.manner != Manner::reads_a_little;
  std::string heard;
  {
    JoinHandle<void> reader;
    if (all) reader = spawn([&] { heard = hear(mine, ~std::size_t{0}); });
    try {
      send(mine, plan);
    } catch (const std::system_error& error) {
      if (!is_end(error)) throw;
    }
    if (plan.manner == Manner::reads_a_little) (void)hear(mine, 1);
  }
  mine.close();
  select(on_recv(served, [](bool) {}),
         on_timeout(kLimit, [] { fail("the server does not end the connection"); }));
  return heard;
}

// ---- the world around

// Sockets and what the poller has. libFuzzer opens files, and pipes to a program that knows the
// names of functions.
std::string descriptors() {
  std::string list;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    std::string what = std::filesystem::read_symlink(entry.path(), closed).string();
    if (what.starts_with("socket:") || what.starts_with("anon_inode:")) list += " " + what;
  }
  return list;
}

struct Left {
  std::size_t goroutines = num_goroutines();
  std::size_t timers = stats().timers;
  std::string open = descriptors();

  bool operator==(const Left&) const = default;
  std::string text() const {
    return std::to_string(goroutines) + " goroutines, " + std::to_string(timers) + " timers," +
           open;
  }
};

class World {
 public:
  World() {
    for (http::Server* server : {&patient_, &impatient_}) add_routes(*server);
    patient_.use(record);
    impatient_.use(http::access_log([](std::string_view) {}));
    impatient_.use(http::timeout(20ms));
    impatient_.use(record);
    patient_.listen("127.0.0.1:0");
    serving_ = spawn([this] { patient_.serve(); });
    ask();
    wait_for_goroutines(3);  // this one, serve(), and the one that accepts
    before_ = Left();
  }
  ~World() {
    (void)patient_.shutdown();
    serving_.join();
  }

  void run(std::string_view input) {
    if (input.size() < 3) return;
    Plan plan = Plan::of(input);
    const bool patient = plan.manner != Manner::stays;
    std::string heard = talk(patient ? patient_ : impatient_, listener_, plan);
    if (plan.manner == Manner::ends || plan.manner == Manner::waits || !patient)
      check(heard, patient);
    if (plan.manner == Manner::ends && plan.pieces != 0 && !has_expectation(plan.bytes)) {
      std::vector<Seen> in_pieces = std::move(seen);
      check(talk(patient_, listener_, {Manner::ends, Pause::none, 0, plan.bytes}), true);
      if (in_pieces != seen) fail("other requests in pieces than as a whole");
    }
    if (++inputs_ % 256 == 0) look_around();
  }

  void look_around() {
    ask();
    const auto limit = std::chrono::steady_clock::now() + kLimit;
    for (Left now; !(now == before_); now = Left()) {
      if (std::chrono::steady_clock::now() > limit)
        fail("there were " + before_.text() + "; there are " + now.text());
      yield();
    }
  }

 private:
  // Until all is set up, and what is not needed any more has ended.
  static void wait_for_goroutines(std::size_t count) {
    const auto limit = std::chrono::steady_clock::now() + kLimit;
    while (num_goroutines() != count) {
      if (std::chrono::steady_clock::now() > limit)
        fail("there are " + std::to_string(num_goroutines()) + " goroutines at rest");
      yield();
    }
  }

  void ask() {
    http::Client client;
    seen.clear();
    http::Reply reply =
        client.get("http://" + patient_.local_address().to_string() + "/hello/good%20one");
    if (reply.status != 200 || reply.body != "hello good one")
      fail("a good request is not answered");
  }

  static http::ServerOptions options(std::chrono::milliseconds time,
                                     std::chrono::milliseconds rest) {
    return {.max_header_bytes = kMaxHeader,
            .max_header_fields = 20,
            .max_body_bytes = kMaxBody,
            .header_timeout = time,
            .idle_timeout = time,
            .body_timeout = time,
            .rest_after = rest,
            .on_error = [](const Request&, std::exception_ptr) {}};
  }

  http::Server patient_{options(30s, 1s)};
  http::Server impatient_{options(30ms, 2ms)};
  net::UnixListener listener_ =
      net::UnixListener::bind("@magpie-fuzz-server-" + std::to_string(::getpid()));
  JoinHandle<void> serving_;
  Left before_;
  std::size_t inputs_ = 0;
};

}  // namespace
}  // namespace magpie::fuzz

// Frames that are left are looked at too.
extern "C" const char* __asan_default_options();   // NOLINT: AddressSanitizer's name
extern "C" const char* __asan_default_options() {  // NOLINT
  return "detect_stack_use_after_return=1";
}

#include "fuzz/fuzz_main.h"
