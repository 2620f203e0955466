// smuggling_test.cc: requests that two servers could understand differently are refused, and so is
// what is no HTTP.

#include <magpie/http.h>
#include <magpie/magpie.h>

#include <string>

#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using support::answer_to;
using support::status_of;

class EchoServer : public Server {
 public:
  EchoServer() {
    handle("/{path...}", [this](Request& req, Response& res) {
      ++handled;
      res.send(req.body());
    });
  }
  std::atomic<int> handled{0};
};

struct Case {
  const char* what;
  std::string request;
  int status;
};

// Each of them followed by what a smuggler would like to have understood as a request of its own.
void expect_refusals(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    for (std::size_t at_once : {support::MemoryStream::kNoLimit, std::size_t{1}}) {
      EchoServer server;
      std::string answer =
          answer_to(server, one.request + "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", at_once);
      EXPECT_EQ(status_of(answer), one.status) << one.what << "\n" << answer;
      EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << one.what << ": a second answer\n"
                                                               << answer;
      EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << one.what;
    }
  }
}

RT_TEST(HttpSmuggling, AmbiguousLengthsAreRefused) {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  expect_refusals({
      {"two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400},
      {"two equal lengths", post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400},
      {"a list of lengths", post + "Content-Length: 5, 5\r\n\r\nhello", 400},
      {"length and chunks",
       post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"chunks and length",
       post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400},
      {"negative", post + "Content-Length: -5\r\n\r\n", 400},
      {"with a sign", post + "Content-Length: +5\r\n\r\nhello", 400},
      {"hexadecimal", post + "Content-Length: 0x5\r\n\r\nhello", 400},
      {"empty", post + "Content-Length: \r\n\r\n", 400},
      {"with a space inside", post + "Content-Length: 5 5\r\n\r\nhello", 400},
      {"more than 64 bits", post + "Content-Length: 99999999999999999999999\r\n\r\n", 400},
  });
}

RT_TEST(HttpSmuggling, TransferEncodingsOtherThanChunkedAreRefused) {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  expect_refusals({
      {"unknown", post + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {"not the last", post + "Transfer-Encoding: chunked, identity\r\n\r\n", 501},
      {"not alone", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {"almost", post + "Transfer-Encoding: xchunked\r\n\r\n", 501},
      {"in quotes", post + "Transfer-Encoding: \"chunked\"\r\n\r\n", 501},
      {"with a parameter", post + "Transfer-Encoding: chunked;q=1\r\n\r\n", 501},
      {"empty", post + "Transfer-Encoding:\r\n\r\n", 501},
      {"after a vertical tab",
       post + "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n",
       400},
      {"twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"twice, one unknown",
       post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", 400},
      {"in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"space before the colon", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
  });
}

RT_TEST(HttpSmuggling, BadChunksAreRefused) {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  expect_refusals({
      {"no number", post + "x\r\n\r\n", 400},
      {"empty size", post + "\r\nhello\r\n0\r\n\r\n", 400},
      {"negative", post + "-1\r\n\r\n", 400},
      {"0x", post + "0x5\r\nhello\r\n0\r\n\r\n", 400},
      {"space before", post + " 5\r\nhello\r\n0\r\n\r\n", 400},
      {"space after", post + "5 \r\nhello\r\n0\r\n\r\n", 400},
      {"more than 64 bits", post + "fffffffffffffffff\r\n", 400},
      {"longer than its size", post + "3\r\nhello\r\n0\r\n\r\n", 400},
      {"bare LF after the size", post + "5\nhello\r\n0\r\n\r\n", 400},
      {"bare LF in a quoted extension", post + "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n", 400},
      {"bare CR in an extension", post + "5;a=\rb\r\nhello\r\n0\r\n\r\n", 400},
      {"a long extension", post + "5;a=" + std::string(1000, 'x') + "\r\nhello\r\n0\r\n\r\n", 400},
      {"a size line without end", post + std::string(20'000, '0'), 400},
      {"a length in the trailer", post + "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n", 400},
  });
}

RT_TEST(HttpSmuggling, BadLinesAreRefused) {
  expect_refusals({
      {"a folded line", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400},
      {"a line folded after nothing", "GET / HTTP/1.1\r\nHost: x\r\nA:\r\n c\r\n\r\n", 400},
      {"a line folded to nothing", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\t\r\n\r\n", 400},
      {"a folded first line", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400},
      {"bare LF", "GET / HTTP/1.1\nHost: x\n\n", 400},
      {"bare LF between fields", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", 400},
      {"bare CR", "GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n", 400},
      {"space before the colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"no colon", "GET / HTTP/1.1\r\nHost: x\r\nnothing\r\n\r\n", 400},
      {"no name", "GET / HTTP/1.1\r\nHost: x\r\n: value\r\n\r\n", 400},
      {"a zero byte", std::string("GET / HTTP/1.1\r\nHost: x\r\nA: ") + '\0' + "b\r\n\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400},
      {"a host of dots", "GET / HTTP/1.1\r\nHost: ..\r\n\r\n", 400},
      {"a host of a dot", "GET / HTTP/1.1\r\nHost: .\r\n\r\n", 400},
      {"a host of a hyphen", "GET / HTTP/1.1\r\nHost: -\r\n\r\n", 400},
      {"a host with an empty label", "GET / HTTP/1.1\r\nHost: a..b\r\n\r\n", 400},
      {"a label that begins with a hyphen", "GET / HTTP/1.1\r\nHost: a.-b\r\n\r\n", 400},
      {"a label that ends with a hyphen", "GET / HTTP/1.1\r\nHost: a-.b\r\n\r\n", 400},
      {"colons in brackets", "GET / HTTP/1.1\r\nHost: [:::::]\r\n\r\n", 400},
      {"too many groups", "GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:8:9]\r\n\r\n", 400},
      {"no version", "GET /\r\nHost: x\r\n\r\n", 400},
      {"two spaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"a space in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"a space after the version", "GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400},
      {"no method", " / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"HTTP/0.9", "GET / HTTP/0.9\r\n\r\n", 505},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505},
      {"http/1.1", "GET / http/1.1\r\nHost: x\r\n\r\n", 400},
      {"no path", "GET a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"up and out", "GET /a/../b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"up and out, escaped", "GET /a/%2e%2E/b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"half an escape", "GET /a%2 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"no escape", "GET /a%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"an escaped zero byte", "GET /a%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
  });
}

RT_TEST(HttpSmuggling, WhatIsUnusualButClearIsAccepted) {
  EchoServer server;
  constexpr const char* kChunks =
      "POST / HTTP/1.1\r\nHost: x\r\ntransfer-encoding:  CHUNKED \r\n\r\n"
      "000005;x;y=\"z\"\r\nhello\r\n00\r\nA: b\r\n\r\n";
  const char* requests[] = {
      "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",  // left over from a request before
      "GET http://x/a HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a-b.c_d.:80\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: [::ffff:1.2.3.4]:80\r\n\r\n",
      "GET /?%zz HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1\r\nhOST:x\r\nEmpty:\r\nTabs:\t\ta\t\r\n\r\n",
      "FOO-bar! / HTTP/1.1\r\nHost: x\r\n\r\n",
      kChunks,
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0005\r\n\r\nhello",
      "GET / HTTP/1.0\r\n\r\n",
      "GET /.../..a HTTP/1.1\r\nHost: x\r\n\r\n",
  };
  int n = 0;
  for (const char* request : requests) {
    EXPECT_EQ(status_of(answer_to(server, request)), 200) << request;
    EXPECT_EQ(server.handled, ++n);
  }
}

}  // namespace
}  // namespace magpie::http
