// router_test.cc: which handler a path is for.

#include "http/router.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace magpie::http {
namespace {

class Routes {
 public:
  explicit Routes(std::initializer_list<const char*> patterns) {
    for (const char* pattern : patterns) add(pattern);
  }
  void add(const char* pattern) {
    router_.add(
        pattern, [](Request&, Response&) {}, std::nullopt);
  }
  // The pattern, or "404", or "405 and what is allowed".
  std::string find(std::string_view method, std::string_view path) const {
    std::vector<std::string_view> segments;
    for (std::size_t at = 0; at < path.size();) {
      std::size_t end = std::min(path.find('/', at + 1), path.size());
      segments.push_back(path.substr(at + 1, end - at - 1));
      at = end;
    }
    Router::Values values;
    Match match = router_.match(method, segments, values);
    if (match.route == nullptr) return match.path_known ? "405 " + match.allowed : "404";
    std::string result = match.route->pattern;
    for (auto segment : values.segments) result += " " + std::to_string(segment);
    return result;
  }

 private:
  Router router_;
};

TEST(HttpRouter, TheMostLiteralPatternWinsFromLeftToRight) {
  Routes routes{"GET /a/{x}/c", "GET /a/b/{y}",     "GET /{x}/b/c",
                "GET /a/b/c",   "GET /a/{rest...}", "GET /{rest...}"};
  EXPECT_EQ(routes.find("GET", "/a/b/c"), "GET /a/b/c");
  EXPECT_EQ(routes.find("GET", "/a/b/d"), "GET /a/b/{y} 2");
  EXPECT_EQ(routes.find("GET", "/a/x/c"), "GET /a/{x}/c 1");
  EXPECT_EQ(routes.find("GET", "/x/b/c"), "GET /{x}/b/c 0");
  EXPECT_EQ(routes.find("GET", "/a/x/d"), "GET /a/{rest...} 1");
  EXPECT_EQ(routes.find("GET", "/a"), "GET /a/{rest...} 1");
  EXPECT_EQ(routes.find("GET", "/x"), "GET /{rest...} 0");
}

TEST(HttpRouter, ADeadEndIsGoneBackFrom) {
  Routes routes{"GET /a/b/c", "GET /{x}/b/d"};
  EXPECT_EQ(routes.find("GET", "/a/b/d"), "GET /{x}/b/d 0");
  EXPECT_EQ(routes.find("GET", "/a/b/e"), "404");
}

TEST(HttpRouter, APathHasToMatchWhole) {
  Routes routes{"GET /", "GET /a", "GET /b/", "GET /c/{x}"};
  EXPECT_EQ(routes.find("GET", "/"), "GET /");
  EXPECT_EQ(routes.find("GET", "/a"), "GET /a");
  EXPECT_EQ(routes.find("GET", "/a/"), "404");
  EXPECT_EQ(routes.find("GET", "/b"), "404");
  EXPECT_EQ(routes.find("GET", "/b/"), "GET /b/");
  EXPECT_EQ(routes.find("GET", "/c/"), "404");  // a parameter is not empty
  EXPECT_EQ(routes.find("GET", "/c/x"), "GET /c/{x} 1");
  EXPECT_EQ(routes.find("GET", "/none"), "404");
}

TEST(HttpRouter, TheMethodDecidesBetweenPatternsOfOnePath) {
  Routes routes{"GET /a", "POST /a", "/any", "GET /any"};
  EXPECT_EQ(routes.find("POST", "/a"), "POST /a");
  EXPECT_EQ(routes.find("HEAD", "/a"), "GET /a");
  EXPECT_EQ(routes.find("DELETE", "/a"), "405 GET, HEAD, POST");
  EXPECT_EQ(routes.find("GET", "/any"), "GET /any");
  EXPECT_EQ(routes.find("DELETE", "/any"), "/any");
}

TEST(HttpRouter, PatternsThatMakeNoSenseAreRefused) {
  Routes routes{"GET /a/{x}"};
  for (const char* pattern : {"", "GET", "GET a", "/{x", "/x}", "/a{x}", "/{}", "/{x}/{x}",
                              "/{rest...}/a", "/{a b}", "GE(T /", "GET /a/{y}"}) {
    EXPECT_THROW(routes.add(pattern), std::invalid_argument) << pattern;
  }
}

TEST(HttpRouter, PatternsThatCanNeverMatchAreRefusedWithTheReason) {
  Routes routes{};
  for (auto [pattern, why] : {std::pair{"get /x", "capitals"},
                              {"Get /x", "capitals"},
                              {"GET /a b", "spaces"},
                              {"GET /a ", "spaces"},
                              {"GET /a\tb", "spaces"},
                              {"GET /a?b=c", "before ?"},
                              {"GET /a#b", "before ?"},
                              {"GET /a//b", "//"},
                              {"GET /a/../b", "such a segment"},
                              {"GET /.", "such a segment"},
                              {"GET /%2e%2e", "such a segment"},
                              {"GET /100%", "no escape"},
                              {"CONNECT /a", "tunnel"}}) {
    try {
      routes.add(pattern);
      ADD_FAILURE() << pattern;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(pattern), std::string::npos) << error.what();
    }
  }
}

TEST(HttpRouter, EscapesInAPatternStandForWhatTheyMean) {
  Routes routes{"GET /a%20b", "GET /\xc3\xbc"};
  EXPECT_EQ(routes.find("GET", "/a b"), "GET /a%20b");  // as it is when it was decoded
  EXPECT_EQ(routes.find("GET", "/\xc3\xbc"), "GET /\xc3\xbc");
}

}  // namespace
}  // namespace magpie::http
