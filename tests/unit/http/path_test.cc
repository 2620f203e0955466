// path_test.cc: what a path, a target and a host may be, and that none of them leads where it
// should not.

#include <magpie/http.h>
#include <magpie/magpie.h>

#include <string>

#include "http/target.h"
#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using support::answer_to;
using support::status_of;

std::string answered_with(const std::string& answer) {
  std::size_t at = answer.find("\r\n\r\n");
  return at == std::string::npos ? answer : answer.substr(at + 4);
}

class FileServer : public Server {
 public:
  FileServer() {
    handle("/files/{rest...}", [](Request& req, Response& res) { res.send(req.param("rest")); });
    handle("/one/{p}", [](Request& req, Response& res) { res.send(req.param("p")); });
    handle("/about", [](Request& req, Response& res) {
      res.send(req.host() + " " + req.header("Host") + " " + req.headers().get("host") + " " +
               req.target());
    });
  }
  std::string ask(std::string_view target, std::string_view host = "x") {
    return answer_to(*this, "GET " + std::string(target) + " HTTP/1.1\r\nHost: " +
                                std::string(host) + "\r\nConnection: close\r\n\r\n");
  }
};

RT_TEST(HttpPath, NoParameterLeadsOutOfItsPrefix) {
  FileServer server;
  for (const char* target :
       {"/files/..%2f..%2fetc%2fpasswd", "/files/..%2F", "/files/a%2f..%2f..%2fb",
        "/files/%2e%2e%2fb", "/files/.%2e%2fb", "/files/%2fetc/passwd", "/files//etc/passwd",
        "/files/a//b", "//files/a", "/files/a%2f%2fb", "/files/a%2f", "/files/./a", "/files/a/..",
        "/one/..%2fa", "/one/%2fetc%2fpasswd", "/one/a%2f..", "/one/..", "/files/a%2f.%2fb"}) {
    EXPECT_EQ(status_of(server.ask(target)), 400) << target;
  }
}

RT_TEST(HttpPath, EscapesThatLeadNowhereElseAreDecoded) {
  FileServer server;
  EXPECT_EQ(answered_with(server.ask("/files/a/b%20c/")), "a/b c/");
  EXPECT_EQ(answered_with(server.ask("/files/")), "");
  EXPECT_EQ(answered_with(server.ask("/files/..a/b..")), "..a/b..");
  EXPECT_EQ(answered_with(server.ask("/one/scope%2Fname")), "scope/name");
  EXPECT_EQ(answered_with(server.ask("/one/%252e%252e%252f")), "%2e%2e%2f");
}

RT_TEST(HttpPath, PathsOfVeryManySegmentsAreRefused) {
  FileServer server;
  std::string target = "/files";
  for (int i = 0; i < 255; ++i) target += "/a";
  EXPECT_EQ(status_of(server.ask(target)), 200);
  EXPECT_EQ(status_of(server.ask(target + "/a")), 414);
}

RT_TEST(HttpPath, OnlyHttpTargetsMayNameAHost) {
  FileServer server;
  for (const char* target :
       {"00/about://y/z", "a/b/c/x://evil/about", "ftp://x/about", ".evil.com/x://y/about",
        "http:/about", "http:///about", "http://a b/about", "http://user@x/about",
        "http://x:99999/about", "http://x:8a/about", "http://[::1/about", "http://[zz]/about",
        "http://x\\y/about", "http:about", "//", "/about#part", "http://x/../about"}) {
    EXPECT_EQ(status_of(server.ask(target)), 400) << target;
  }
}

// Whoever asks for a tunnel, or passes the wish on, takes any 2xx for one, and the bytes behind it
// for those of the tunnel.
RT_TEST(HttpPath, NobodyGetsATunnel) {
  Server server;
  server.handle("/{rest...}", [](Request&, Response& res) { res.send("seen"); });
  for (const char* target : {"x:80", "/about", "http://x/about", "*", "x"}) {
    const std::string answer =
        answer_to(server, "CONNECT " + std::string(target) +
                              " HTTP/1.1\r\nHost: x\r\n\r\nGET /about HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(status_of(answer), 501) << target;
    EXPECT_EQ(answer.find("seen"), std::string::npos) << target << ": " << answer;
  }
}

RT_TEST(HttpPath, TheHostOfTheTargetCountsInsteadOfTheHeader) {
  FileServer server;
  EXPECT_EQ(answered_with(server.ask("/about?q")), "x x x /about?q");
  EXPECT_EQ(answered_with(server.ask("http://y:80/about?q", "evil")), "y:80 y:80 y:80 /about?q");
  EXPECT_EQ(answered_with(server.ask("HTTPS://[::1]:8080/about", "evil")),
            "[::1]:8080 [::1]:8080 [::1]:8080 /about");
  EXPECT_EQ(answered_with(answer_to(server, "GET http://y/about HTTP/1.0\r\n\r\n")), "y   /about");
}

RT_TEST(HttpPath, ATargetInAHandlerBeginsWithASlash) {
  Server server;
  server.handle("/{rest...}", [](Request& req, Response& res) { res.send(req.target()); });
  for (auto [target, seen] :
       {std::pair{"http://y", "/"}, {"http://y?a=/b", "/?a=/b"}, {"/a?b", "/a?b"}}) {
    EXPECT_EQ(
        answered_with(answer_to(server, "GET " + std::string(target) +
                                            " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")),
        seen);
  }
}

RT_TEST(HttpPath, AHostThatIsNoneIsRefused) {
  FileServer server;
  for (const char* host : {"a b", "a/../b", "user@x", "x?y", "<script>", "x:y", "x:123456", "[::1",
                           "[::1]x", "::1", ":80", "x,y", "x%20", "x:70000"}) {
    EXPECT_EQ(status_of(server.ask("/about", host)), 400) << host;
  }
  for (const char* host : {"", "x", "x:", "x:80", "example.org:8080", "[::1]", "[::1]:80",
                           "127.0.0.1", "a_b-c.d", "EXAMPLE.org."}) {
    EXPECT_EQ(status_of(server.ask("/about", host)), 200) << host;
  }
}

}  // namespace
}  // namespace magpie::http
