// router.h: which handler a request is for. Made before the first request, then only read.
//
// A tree of path segments. At each node find() tries the literal child first, then the parameter,
// then the rest. If one way leads nowhere it tries the next, so the most literal pattern wins from
// left to right. A pattern has few parameters, so this ends quickly: at most two children are tried
// where patterns share a prefix.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <magpie/http/middleware.h>

namespace magpie::http {

struct Route {
  std::string pattern;
  std::string method;  // empty: all
  Handler handler;
  std::optional<std::uint64_t> max_body_bytes;
  std::vector<std::string> names;  // of the parameters, in the order of the path

  // A handler is quick if its last runs all were. Then its answers may wait for each other.
  bool is_quick() const { return quick_runs_.load(std::memory_order_relaxed) >= kQuickRuns; }
  // Goroutines that note at the same time may lose a run: a hint.
  void note_run(std::int64_t ns) const {
    const int runs = quick_runs_.load(std::memory_order_relaxed);
    if (ns >= kQuickNs) {
      quick_runs_.store(0, std::memory_order_relaxed);
    } else if (runs < kQuickRuns) {
      quick_runs_.store(runs + 1, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr int kQuickRuns = 8;
  static constexpr std::int64_t kQuickNs = 200'000;

  mutable std::atomic<int> quick_runs_{0};  // atomic, a hint: quick runs in a row, up to the limit
};

struct Match {
  const Route* route = nullptr;
  bool path_known = false;  // another method would have matched: `allowed`
  std::string allowed;
};

class Router {
 public:
  // Throws std::invalid_argument.
  void add(std::string_view pattern, Handler handler, std::optional<std::uint64_t> max_body_bytes);

  // The segments of the path, decoded; `values` gets those that parameters stand for, with
  // {rest...} as index and count of segments in `rest`.
  struct Values {
    std::vector<std::uint32_t> segments;  // of each parameter
    bool rest = false;                    // the last one stands for all segments from there on
  };
  Match match(std::string_view method, const std::vector<std::string_view>& segments,
              Values& values) const;

 private:
  struct Node {
    std::map<std::string, std::unique_ptr<Node>, std::less<>> literal;
    std::unique_ptr<Node> parameter;
    std::vector<std::unique_ptr<Route>> routes;       // that end here, by method
    std::vector<std::unique_ptr<Route>> rest_routes;  // that end here in {rest...}
  };

  static const Route* of_method(const std::vector<std::unique_ptr<Route>>& routes,
                                std::string_view method, Match& match);
  static const Route* find(const Node& node, std::string_view method,
                           const std::vector<std::string_view>& segments, std::size_t at,
                           Values& values, Match& match);

  Node root_;
};

}  // namespace magpie::http
