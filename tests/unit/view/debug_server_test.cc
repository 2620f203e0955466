// debug_server_test.cc: the debug pages over HTTP.

#include <magpie/debug_server.h>
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "support/http_talk.h"
#include "support/rt_test.h"
#include "support/test_length.h"
#include "trace/buffer.h"
#include "trace/file_builder.h"
#include "view/trace_api.h"

namespace magpie {
namespace {

using support::eventually;
using trace::Kind;

// The body, or the status if that is not 200.
std::string get(const debug::Server& pages, const std::string& path) {
  http::Client client;
  const http::Reply reply = client.get("http://" + pages.local_address().to_string() + path);
  return reply.status == 200 ? reply.body : std::to_string(reply.status);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

RT_TEST(DebugServer, ShowsThePageAndTheNumbers) {
  const debug::Server pages = debug::serve();
  EXPECT_TRUE(has(get(pages, "/debug/"), "<title>Magpie</title>"));
  EXPECT_TRUE(has(get(pages, "/"), "<title>Magpie</title>"));  // by way of a redirection
  const std::string stats = get(pages, "/debug/stats");
  EXPECT_TRUE(stats.starts_with("{\"time_ns\":")) << stats;
  EXPECT_TRUE(has(stats, "\"goroutines_stolen\":")) << stats;
  EXPECT_TRUE(has(get(pages, "/debug/info"), "\"live\":true"));
  EXPECT_EQ(get(pages, "/debug/nothing"), "404");
  EXPECT_EQ(get(pages, "/debug/view/summary"), "404");  // nothing was recorded
}

RT_TEST(DebugServer, ThePageHasANonceThatItsPolicyNames) {
  const debug::Server pages = debug::serve();
  http::Client client;
  const http::Reply reply = client.get(pages.url());
  const std::string policy = reply.header("Content-Security-Policy");
  const std::size_t at = policy.find("'nonce-");
  ASSERT_NE(at, std::string::npos) << policy;
  const std::string nonce = policy.substr(at + 7, policy.find('\'', at + 7) - at - 7);
  EXPECT_EQ(nonce.size(), 32u);
  EXPECT_TRUE(has(reply.body, "<script nonce=\"" + nonce + "\">"));
  EXPECT_FALSE(has(reply.body, "%NONCE%"));
  EXPECT_FALSE(has(reply.body, "<!-- include"));  // every part was put in
  EXPECT_NE(client.get(pages.url()).header("Content-Security-Policy"), policy);
}

RT_TEST(DebugServer, MetricsHaveTheStatesOfGoroutinesAndTheHistogramOfLateness) {
  const debug::Server pages = debug::serve();
  const std::string text = get(pages, "/metrics");
  for (const char* name : {"cpus", "cpu_quota_cpus", "quota_periods_total",
                           "throttled_periods_total", "throttled_seconds_total"}) {
    EXPECT_TRUE(has(text, "\nmagpie_" + std::string(name) + " ")) << name;
  }
  for (std::string_view part :
       {"# TYPE magpie_goroutines gauge", "magpie_goroutines{state=\"waiting\"} ",
        "# TYPE magpie_steals_succeeded_total counter", "\nmagpie_parks_total ",
        "\nmagpie_preemptions_total ", "magpie_proc_queue_length{proc=\"0\"} ",
        "# TYPE magpie_wakeup_lateness_seconds histogram",
        "magpie_wakeup_lateness_seconds_bucket{le=\"+Inf\"} "}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  // The probe began with the first question.
  EXPECT_TRUE(eventually(
      [&] { return !has(get(pages, "/metrics"), "magpie_wakeup_lateness_seconds_count 0\n"); }));
}

RT_TEST(DebugServer, GoroutinesAreShownAsTextAndFoldedAsJson) {
  const debug::Server pages = debug::serve();
  WaitGroup gate, all;
  gate.add(1);
  for (int i = 0; i < 30; ++i) {
    all.add(1);
    go({.name = "<sleeper>"}, [&] {
      gate.wait();
      all.done();
    });
  }
  EXPECT_TRUE(eventually([&] {
    return has(get(pages, "/debug/goroutines?format=json&text=sleeper"), "\"count\":30,");
  }));
  const std::string groups = get(pages, "/debug/goroutines?format=json&text=sleeper");
  EXPECT_TRUE(has(groups, "\"total\":30,")) << groups;
  EXPECT_TRUE(has(groups, "\"reason\":\"WaitGroup wait\"")) << groups;
  EXPECT_TRUE(has(get(pages, "/debug/goroutines?format=json&text=nobody"), "\"groups\":[]"));
  EXPECT_TRUE(has(get(pages, "/debug/goroutines"), "<sleeper>"));
  const std::string waits = get(pages, "/debug/waits");
  EXPECT_TRUE(has(waits, "\"count\":30,")) << waits;
  gate.done();
  all.wait();
}

RT_TEST(DebugServer, CodeWhoseWaitingGoroutinesBecomeMoreIsSuspected) {
  const debug::Server pages = debug::serve();
  WaitGroup gate, all;
  gate.add(1);
  std::size_t started = 0;
  std::atomic<std::size_t> begun{0};
  auto start = [&](std::size_t how_many) {
    started += how_many;
    for (std::size_t i = 0; i < how_many; ++i) {
      all.go([&] {
        ++begun;
        gate.wait();
      });
    }
    EXPECT_TRUE(eventually([&] { return begun == started && stats().waiting >= started; }));
  };
  start(5);
  EXPECT_TRUE(has(get(pages, "/debug/waits"), "\"suspects\":[]"));
  start(20);
  const std::string waits = get(pages, "/debug/waits");
  EXPECT_TRUE(has(waits, "\"suspects\":[{")) << waits;
  gate.done();
  all.wait();
}

RT_TEST(DebugServer, AnAddressThatIsNotLoopbackNeedsAToken) {
  EXPECT_THROW((void)debug::serve("0.0.0.0:0"), std::invalid_argument);
  const debug::Server pages = debug::serve("127.0.0.1:0", {.token = "secret", .hosts = {}});
  EXPECT_EQ(get(pages, "/debug/stats"), "401");
  EXPECT_EQ(get(pages, "/metrics"), "401");
  EXPECT_TRUE(get(pages, "/debug/stats?token=secret").starts_with("{"));
  EXPECT_TRUE(has(pages.url(), "?token=secret"));
}

RT_TEST(DebugServer, ToolsFindTheProcessByItsNumber) {
  const debug::Server pages = debug::serve();
  net::UnixConn conn = net::UnixConn::connect("@magpie-debug-" + std::to_string(getpid()));
  conn.write(std::string_view("GET /debug/info HTTP/1.0\r\nHost: localhost\r\n\r\n"));
  std::string answer;
  char bytes[1024];
  while (std::size_t n = conn.read(std::as_writable_bytes(std::span(bytes)))) {
    answer.append(bytes, n);
  }
  EXPECT_TRUE(has(answer, "\"pid\":" + std::to_string(getpid()))) << answer;
}

TEST(DebugServer, RecordsATraceOfTheProgram) {
  run(Options{.procs = 2}, [] {
    const debug::Server pages = debug::serve();
    auto recorded = spawn([&] { return get(pages, "/debug/view/record?seconds=1"); });
    while (!recorded.try_join_for(std::chrono::milliseconds(1))) {
      WaitGroup all;
      for (int i = 0; i < 10; ++i) all.go([] { yield(); });
      all.wait();
    }
    EXPECT_TRUE(has(get(pages, "/debug/info"), "\"trace\":true"));
    EXPECT_TRUE(eventually([&] {  // a thread still reads the trace
      return has(get(pages, "/debug/view/goroutines?limit=1000"), "\"state\":\"ended\"");
    }));
    EXPECT_TRUE(has(get(pages, "/debug/view/summary"), "\"steals\":["));
    EXPECT_TRUE(get(pages, "/debug/trace?seconds=1").starts_with("MAGPIE TRACE"));
  });
}

RT_TEST(DebugServer, SaysWhichSecondsItTakes) {
  const debug::Server pages = debug::serve();
  for (const char* seconds : {"0", "-1", "61", "999999", "99999999999999999999", "0.5", "soon"})
    EXPECT_EQ(get(pages, "/debug/trace?seconds=" + std::string(seconds)), "400") << seconds;
}

// A client that goes away does not keep others from recording.
TEST(DebugServer, StopsRecordingWhenTheClientHasGone) {
  run(Options{.procs = 2}, [] {
    const debug::Server pages = debug::serve();
    net::TcpConn client = net::TcpConn::connect(pages.local_address().to_string());
    client.write(
        std::string_view("GET /debug/trace?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ASSERT_TRUE(eventually([] { return trace::is_on(); }));
    client.close();
    EXPECT_TRUE(eventually([] { return !trace::is_on(); }, std::chrono::seconds(45)));
  });
}

RT_TEST(DebugServer, ItsUrlShowsAnyToken) {
  const debug::Server pages = debug::serve("127.0.0.1:0", {.token = "a+b/c==&d#e %\xc3\xa4"});
  http::Client client;
  EXPECT_EQ(client.get(pages.url()).status, 200) << pages.url();
}

// A client may ask for many dumps at a time. They do not need a thread each.
TEST(DebugServer, ManyDumpsNeedFewThreads) {
  run(Options{.procs = 2}, [] {
    const debug::Server pages = debug::serve();
    WaitGroup all;
    for (int i = 0; i < 60; ++i)
      all.go([&] { EXPECT_TRUE(has(get(pages, "/debug/goroutines"), "goroutine 1")); });
    all.wait();
    // One for each dump would be 60; some are spares, or wait for others' connections.
    EXPECT_LT(stats().threads, 45);
  });
}

TEST(DebugServer, AHandlerChecksHostOriginAndMethod) {
  run([] {
    http::Server server;
    server.handle("/inside/{rest...}", debug::handler());
    server.handle("GET /metrics", debug::handler());
    auto status = [&](const std::string& request, const std::string& fields) {
      return support::status_of(support::answer_to(
          server, request + " HTTP/1.1\r\nConnection: close\r\n" + fields + "\r\n"));
    };
    EXPECT_EQ(status("GET /inside/stats", "Host: localhost\r\n"), 200);
    EXPECT_EQ(status("GET /inside/", "Host: localhost\r\n"), 200);
    EXPECT_EQ(status("GET /metrics", "Host: localhost\r\n"), 200);
    EXPECT_EQ(status("GET /inside/stats", "Host: evil.example\r\n"), 403);
    EXPECT_EQ(status("GET /metrics", "Host: evil.example\r\n"), 403);
    EXPECT_EQ(status("GET /inside/stats", "Host: localhost\r\nOrigin: http://a.example\r\n"), 403);
    EXPECT_EQ(status("GET /inside/stats", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n"),
              403);
    EXPECT_EQ(status("DELETE /inside/stats", "Host: localhost\r\n"), 405);
  });
}

// A trace in a file of its own: of two goroutines on one P, or the one that is given.
class TraceFile {
 public:
  TraceFile() : TraceFile(two_goroutines()) {}
  explicit TraceFile(const std::string& bytes) {
    const int descriptor = mkstemp(name_);
    if (descriptor < 0 || write(descriptor, bytes.data(), bytes.size()) < 0) std::abort();
    close(descriptor);
  }
  ~TraceFile() { unlink(name_); }
  const char* name() const { return name_; }

 private:
  static std::string two_goroutines() {
    trace::FileBuilder file({.procs = 1, .program = "two", .wall_ns = 0, .block_bytes = 16384});
    file.put(0, 0, Kind::proc_begin, {100});
    file.put(0, 10, Kind::create, {1, 0x1000, 1, 0});
    file.text(0, 20, Kind::name, {"<i>one</i>"}, {1});
    file.put(0, 30, Kind::run, {1, 1});
    file.put(0, 1'000, Kind::create, {2, 0x2000, 1, 0});
    file.put(0, 2'000, Kind::park, {2, 0x7000});
    file.put(0, 2'100, Kind::run, {2, 1});
    file.put(0, 9'000, Kind::ready, {1, 0, 0});
    file.put(0, 9'100, Kind::end, {});
    file.put(0, 9'200, Kind::run, {1, 0});
    file.put(0, 10'000, Kind::end, {});
    return file.finish(10'100);
  }

  char name_[32] = "/tmp/magpie_view_XXXXXX";
};

RT_TEST(TracePages, ShowWhatIsInTheFile) {
  const TraceFile file;
  const debug::Server pages = debug::serve_trace(file.name());
  EXPECT_TRUE(has(get(pages, "/debug/info"), "\"live\":false,\"trace\":true"));
  EXPECT_TRUE(has(get(pages, "/debug/info"), "\"program\":\"two\""));
  EXPECT_EQ(get(pages, "/debug/stats"), "404");  // the serving process is not what is shown
  const std::string summary = get(pages, "/debug/view/summary");
  EXPECT_TRUE(has(summary, "\"site_texts\"")) << summary;
  EXPECT_TRUE(has(get(pages, "/debug/view/info"), "\"procs\":1,\"events\":"));
  // Goroutine 2 ran from 2100 to 9100.
  const std::string tile = get(pages, "/debug/view/tile?level=5&index=0");
  EXPECT_TRUE(has(tile, "2100,9100,2,1,7000,0")) << tile;
  const std::string rows = get(pages, "/debug/view/goroutines?limit=10&text=one");
  EXPECT_TRUE(has(rows, "\"total\":1")) << rows;
  EXPECT_TRUE(has(rows, "\"matching\":[1]")) << rows;
  const std::string one = get(pages, "/debug/view/goroutine?id=1");
  EXPECT_TRUE(has(one, "\"reason\":\"WaitGroup wait\"")) << one;
  EXPECT_TRUE(has(get(pages, "/debug/view/waits"), "\"cycles\":[]"));
}

// The thread that reads the file goes on while a tile is made.
TEST(TracePages, ATileThatIsSaidToBeCompleteStaysAsItIs) {
  trace::FileBuilder file({.procs = 1});
  for (std::int64_t i = 0; i < 50'000; ++i) {
    file.put(0, 2'000 * i, Kind::create, {static_cast<std::uint64_t>(i + 1), 0, 1, 0});
    file.put(0, 2'000 * i + 100, Kind::run, {static_cast<std::uint64_t>(i + 1), 1});
    file.put(0, 2'000 * i + 1'900, Kind::end, {});
  }
  const TraceFile on_disk(file.finish());
  view::TraceQuestion all;
  all.level = 18;
  for (int round = 0; round < support::scaled(30); ++round) {
    const view::TraceApi pages(on_disk.name());
    std::string tile;
    while (!has(tile, "\"complete\":true")) tile = pages.answer("tile", all).value();
    ASSERT_EQ(tile, pages.answer("tile", all).value());
  }
}

RT_TEST(TracePages, QuestionsThatMakeNoSenseAreHarmless) {
  const TraceFile file;
  const debug::Server pages = debug::serve_trace(file.name());
  for (const char* question :
       {"tile?level=99999999999&index=-5", "tile?level=63&index=9223372036854775807", "tile",
        "goroutine?id=12345", "goroutine?id=-1", "goroutine?id=99999999999999999999",
        "goroutines?limit=99999999999&offset=9223372036854775807", "goroutines?sort=x"}) {
    EXPECT_TRUE(get(pages, std::string("/debug/view/") + question).starts_with("{")) << question;
  }
  EXPECT_EQ(get(pages, "/debug/view/"), "404");
  EXPECT_THROW((void)debug::serve_trace("/dev/null"), std::runtime_error);
  EXPECT_THROW((void)debug::serve_trace("/no/such/file"), std::runtime_error);
}

}  // namespace
}  // namespace magpie
