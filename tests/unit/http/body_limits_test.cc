// body_limits_test.cc: bodies of requests that are too large, too slow or malformed are refused.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/http_echo.h"
#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::add_echo;
using support::answer_to;
using support::eventually;
using support::status_of;
using support::Talk;

RT_TEST(HttpLimits, BodiesThatAreTooLargeAreRefused) {
  Server server(ServerOptions{.max_body_bytes = 100});
  add_echo(server);
  auto post = [&](const char* path, std::size_t size) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" +
           std::string(size, 'x');
  };
  EXPECT_EQ(status_of(answer_to(server, post("/echo", 100))), 200);
  EXPECT_EQ(status_of(answer_to(server, post("/echo", 101))), 413);
  EXPECT_EQ(status_of(answer_to(server, post("/large", 1000))), 200);
  EXPECT_EQ(status_of(answer_to(server, post("/large", 1001))), 413);
  // The body need not be sent to be refused.
  Talk waits(server);
  waits.say(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n");
  waits.hear_body();
  EXPECT_EQ(waits.status(), 413);
  std::string chunks = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) chunks += "a\r\n0123456789\r\n";
  EXPECT_EQ(status_of(answer_to(server, chunks + "0\r\n\r\n")), 413);
  EXPECT_EQ(status_of(answer_to(server,
                                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                                "chunked\r\n\r\nffffffffffffffff\r\n" +
                                    std::string(200, 'x'))),
            413);
}

RT_TEST(HttpLimits, ABodyThatDripsIsAnswered408) {
  Server server(ServerOptions{.body_timeout = 50ms});
  add_echo(server);
  Talk talk(server);
  talk.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  auto drip = spawn([&] {
    try {
      for (;;) {
        talk.say("x");
        sleep_for(1ms);
      }
    } catch (const std::system_error&) {
    }
  });
  talk.hear_body();
  EXPECT_EQ(talk.status(), 408);
  talk.close();
  talk.wait_for_server();
}

RT_TEST(HttpLimits, ABodyThatEndsTooEarlyIsNotTakenForWhole) {
  Server server;
  std::atomic<int> whole{0};
  server.handle("POST /", [&](Request& req, Response& res) {
    (void)req.body();
    ++whole;
    res.send();
  });
  EXPECT_EQ(
      status_of(answer_to(server, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")),
      400);
  EXPECT_EQ(status_of(answer_to(
                server,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")),
            400);
  EXPECT_EQ(whole, 0);
}

RT_TEST(HttpLimits, TrailersHaveTheLimitsOfAHeader) {
  Server server(ServerOptions{.max_header_bytes = 2000, .max_header_fields = 10});
  add_echo(server);
  // However it arrives.
  auto post = [&](const std::string& trailer) {
    const std::string request =
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n" +
        trailer + "\r\n";
    const int status = status_of(answer_to(server, request));
    for (std::size_t at_once : {1, 100}) {
      EXPECT_EQ(status_of(answer_to(server, request, at_once)), status) << trailer;
    }
    return status;
  };
  EXPECT_EQ(post("A: b\r\n"), 200);
  EXPECT_EQ(post("A: b\r\n c\r\n"), 400);
  EXPECT_EQ(post("A: " + std::string(1800, 'x') + "\r\n"), 200);
  EXPECT_EQ(post("A: " + std::string(2100, 'x') + "\r\n"), 431);
  std::string many;
  for (int i = 0; i < 11; ++i) many += "A: b\r\n";
  EXPECT_EQ(post(many), 431);
}

RT_TEST(HttpLimits, ABodyThatNobodyReadsIsThrownAwayByTheBytesOfTheWire) {
  Server server;
  server.handle("POST /", [](Request&, Response& res) { res.send("unread"); });
  server.handle("GET /next", [](Request&, Response& res) { res.send("next"); });
  auto answers = [&](int chunks) {
    std::string all = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string chunk = "10;" + std::string(90, 'x') + "\r\n0123456789abcdef\r\n";
    for (int i = 0; i < chunks; ++i) all += chunk;
    return answer_to(server, all + "0\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  };
  EXPECT_NE(answers(100).find("next"), std::string::npos);
  EXPECT_EQ(answers(1000).find("next"), std::string::npos);  // 16 KB, but 115 KB of the wire
}

RT_TEST(HttpLimits, ABodyOfNothingButChunkHeadersIsRefused) {
  Server server;
  add_echo(server);
  std::string all = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 1000; ++i) all += "1;" + std::string(200, 'x') + "\r\ny\r\n";
  EXPECT_EQ(status_of(answer_to(server, all + "0\r\n\r\n")), 400);
  std::string small = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20'000; ++i) small += "1\r\ny\r\n";
  EXPECT_EQ(status_of(answer_to(server, small + "0\r\n\r\n")), 200);
}

// Just too much is around the bytes, and bytes that would make up for it follow at once.
RT_TEST(HttpLimits, WhatIsAroundABodyCountsAlikeHoweverItArrives) {
  Server server;
  add_echo(server);
  constexpr std::size_t kAtMost = 64 * 1024, kFor1Byte = 8;
  std::string body;
  for (std::size_t chunks = 0; body.size() <= kAtMost + kFor1Byte * chunks; ++chunks)
    body += "1;" + std::string(200, 'x') + "\r\ny\r\n";
  body += "400\r\n" + std::string(1024, 'z') + "\r\n0\r\n\r\n";
  for (std::size_t at_once :
       {std::size_t{50}, std::size_t{1000}, support::MemoryStream::kNoLimit}) {
    EXPECT_EQ(
        status_of(answer_to(
            server, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body,
            at_once)),
        400)
        << at_once;
  }
}

RT_TEST(HttpLimits, ABodyThatIsTooSlowAsAWholeIsAnswered408) {
  Server server(ServerOptions{.body_timeout = 100ms, .min_bytes_per_second = 1'000'000});
  add_echo(server);
  Talk talk(server);
  talk.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 409600\r\n\r\n");
  auto drip = spawn([&] {
    try {
      // Each 4 KiB come in time, but at less than half of the rate.
      for (int i = 0; i < 100; ++i) {
        talk.say(std::string(4096, 'x'));
        sleep_for(10ms);
      }
    } catch (const std::system_error&) {
    }
  });
  talk.hear_body();
  EXPECT_EQ(talk.status(), 408);
  talk.close();
  talk.wait_for_server();
}

RT_TEST(HttpLimits, BodiesTogetherHaveALimitOfMemory) {
  Server server(ServerOptions{.max_body_memory = 300'000});
  Chan<void> inside, leave;
  server.handle("POST /hold", [&](Request& req, Response& res) {
    (void)req.body();
    inside.send();
    leave.recv();
    res.send("held");
  });
  add_echo(server);
  const std::string body(200'000, 'x');
  auto post = [&](const char* path) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" +
           body;
  };
  Talk holds(server);
  holds.say(post("/hold"));
  inside.recv();
  EXPECT_EQ(status_of(answer_to(server, post("/echo"))), 503);
  EXPECT_EQ(
      status_of(answer_to(server, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")),
      200);
  leave.send();
  EXPECT_EQ(holds.hear_body(), "held");
  holds.close();
  holds.wait_for_server();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(answer_to(server, post("/echo"))), 200);
}

// Such clients could hold all of the memory for hours, at the rate that is the minimum.
RT_TEST(HttpLimits, BodiesThatComeSlowlyGiveTheirMemoryToOthers) {
  Server server(ServerOptions{.max_body_memory = 300'000});
  add_echo(server);
  const std::string head = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n";
  Talk slow(server);
  slow.say(head + std::string(150'000, 'x'));
  EXPECT_TRUE(eventually([&] { return slow.stream().unread_by_peer() == 0; }));
  EXPECT_TRUE(eventually(
      [&] { return status_of(answer_to(server, head + std::string(200'000, 'x'))) == 200; }));
  slow.hear_body();
  EXPECT_EQ(slow.status(), 408);
}

// A client that is lucky with its packets must not be answered otherwise than one that is not.
RT_TEST(HttpLimits, WhatIsGoodOfABodyComesBeforeItsFaultHoweverItArrives) {
  Server server;
  std::string read;
  int failure = 0;
  server.handle("POST /", [&](Request& req, Response& res) {
    read.clear();
    char some[100];
    try {
      while (std::size_t n = req.read(std::span<char>(some))) read.append(some, n);
    } catch (const StatusError& error) {
      failure = error.status();
      throw;
    }
    res.send();
  });
  server.handle("POST /part", [&](Request& req, Response& res) {
    char some[100];
    read.assign(some, req.read(std::span<char>(some)));
    res.send();
  });
  const auto post = [](std::string path, std::string_view chunks) {
    return "POST " + path + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
           std::string(chunks);
  };
  for (std::size_t at_once : {support::MemoryStream::kNoLimit, std::size_t{1}}) {
    EXPECT_EQ(status_of(answer_to(server, post("/", "5\r\nhelloXX\r\n0\r\n\r\n"), at_once)), 400);
    EXPECT_EQ(read, "hello");
    EXPECT_EQ(failure, 400);
    // Who does not ask for the rest does not learn of it, and no other request is read after it.
    const std::string answer = answer_to(
        server, post("/part", "5\r\nhelloXX\r\n0\r\n\r\n") + post("/", "0\r\n\r\n"), at_once);
    EXPECT_EQ(status_of(answer), 200) << answer;
    EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
  }
}

RT_TEST(HttpLimits, ABodyThatHasFailedFailsAgain) {
  std::vector<int> statuses;
  auto status_of_body = [](auto read) {
    try {
      read();
      return 0;
    } catch (const StatusError& error) {
      return error.status();
    }
  };
  Server server(ServerOptions{.max_body_bytes = 10, .body_timeout = 50ms});
  server.handle("POST /body", [&](Request& req, Response&) {
    for (int i = 0; i < 2; ++i) statuses.push_back(status_of_body([&] { (void)req.body(); }));
  });
  server.handle("POST /read", [&](Request& req, Response&) {
    char some[100];
    for (int i = 0; i < 2; ++i)
      statuses.push_back(status_of_body([&] { (void)req.read(std::span(some)); }));
  });
  for (const char* path : {"/body", "/read"}) {
    for (auto [body, status] : {std::pair("z\r\n", 400), std::pair("b\r\n12345678901\r\n", 413),
                                std::pair("5\r\n", 408)}) {
      statuses.clear();
      Talk talk(server);
      talk.say(std::string("POST ") + path +
               " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body);
      (void)talk.hear_body();
      EXPECT_EQ(statuses, std::vector<int>({status, status})) << path;
    }
  }
}

RT_TEST(HttpLimits, AHandlerMayLearnByAnErrorCodeWhatIsWrongWithABody) {
  std::vector<std::error_code> errors;
  Server server(ServerOptions{.max_body_bytes = 10, .body_timeout = 50ms});
  server.handle("POST /body", [&](Request& req, Response& res) {
    EXPECT_TRUE(req.body(errors.emplace_back()).empty());
    res.status(299).send("mine");
  });
  server.handle("POST /read", [&](Request& req, Response& res) {
    char some[100];
    EXPECT_EQ(req.read(std::span(some), errors.emplace_back()), 0u);
    res.status(299).send("mine");
  });
  server.handle("POST /good", [&](Request& req, Response& res) {
    std::error_code reading, sending;
    res.send(req.body(reading), sending);
    errors = {reading, sending};
  });
  const auto post = [](std::string_view path, std::string_view body) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(body);
  };
  for (const char* path : {"/body", "/read"}) {
    for (auto [body, error] : {std::pair("z\r\n", std::errc::protocol_error),
                               std::pair("b\r\n12345678901\r\n", std::errc::message_size),
                               std::pair("5\r\n", std::errc::timed_out)}) {
      errors.clear();
      Talk talk(server);
      talk.say(post(path, body));
      const std::string answer = talk.hear_all();  // to its end: what follows is not understood
      EXPECT_EQ(errors, std::vector({std::make_error_code(error)})) << path;
      EXPECT_EQ(status_of(answer), 299) << "the handler answers";
    }
  }
  EXPECT_TRUE(answer_to(server, post("/good", "4\r\ngood\r\n0\r\n\r\n")).ends_with("good"));
  EXPECT_EQ(errors, std::vector<std::error_code>(2));
}

}  // namespace
}  // namespace magpie::http
